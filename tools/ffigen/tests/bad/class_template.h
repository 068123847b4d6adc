// expect: 2: error: 'Box': CLASS_TEMPLATE is not supported
template <typename T> struct Box { T value; };
