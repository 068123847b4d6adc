// Headers are parsed as C++, where bool is a keyword.
#pragma once
