"""The typed graph between the front end and the emitters: plain data, no TensorFlow.

`values.py` says what a tensor is; images and sequences are channels last. An op says everything
that a kernel needs, except what the shapes of its operands and results say (`Reshape` has no
attribute). Its class is its card: `Op` says what a card has, and `ops` has the cards by families.

An operand that is left out is `None`, and operands at the end may be missing: read them with
`Node.operand`. A value is the output of one node, an input of the graph, or has `data`: then it is
a constant, and the same object wherever it is used. `interpret.py` runs a graph by the meanings of
its ops in NumPy; the tests hold it against TensorFlow.

The public names of each family, its `__all__`, are also names of this module.
"""

# ruff: noqa: F403

from converters.tf.ir.graph import Graph as Graph
from converters.tf.ir.graph import Layer as Layer
from converters.tf.ir.graph import Node as Node
from converters.tf.ir.graph import Op as Op
from converters.tf.ir.graph import Port as Port
from converters.tf.ir.ops.control import *
from converters.tf.ir.ops.conv import *
from converters.tf.ir.ops.custom import *
from converters.tf.ir.ops.dynamic import *
from converters.tf.ir.ops.elementwise import *
from converters.tf.ir.ops.functions import *
from converters.tf.ir.ops.image import *
from converters.tf.ir.ops.introsort import *
from converters.tf.ir.ops.matrix import *
from converters.tf.ir.ops.moving import *
from converters.tf.ir.ops.norm import *
from converters.tf.ir.ops.quantized import *
from converters.tf.ir.ops.random import *
from converters.tf.ir.ops.reduction import *
from converters.tf.ir.ops.sequence import *
from converters.tf.ir.ops.text import *
from converters.tf.ir.ops.whole_texts import *
from converters.tf.ir.ops.written import *
from converters.tf.ir.values import Array as Array
from converters.tf.ir.values import Batch as Batch
from converters.tf.ir.values import Dim as Dim
from converters.tf.ir.values import DType as DType
from converters.tf.ir.values import Shape as Shape
from converters.tf.ir.values import Value as Value
from converters.tf.ir.values import constant as constant
from converters.tf.ir.values import shape_at as shape_at
from converters.tf.ir.values import shape_text as shape_text
