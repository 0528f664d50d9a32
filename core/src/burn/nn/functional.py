"""Functions of neural networks: activations, convolutions, pooling, normalization, losses."""

from burn.functions.nn.activation import *
from burn.functions.nn.adaptive_max_pooling import *
from burn.functions.nn.attention_mask import *
from burn.functions.nn.average_pooling import *
from burn.functions.nn.classification_loss import *
from burn.functions.nn.convolution import *
from burn.functions.nn.deformable_convolution import *
from burn.functions.nn.dense import *
from burn.functions.nn.distance import *
from burn.functions.nn.dropout import *
from burn.functions.nn.fake_quantization import *
from burn.functions.nn.gram_matrix import *
from burn.functions.nn.likelihood_loss import *
from burn.functions.nn.loss import *
from burn.functions.nn.margin_loss import *
from burn.functions.nn.max_pooling import *
from burn.functions.nn.max_unpooling import *
from burn.functions.nn.multilabel_loss import *
from burn.functions.nn.normalization import *
from burn.functions.nn.pixel_shuffle import *
from burn.functions.nn.power_pooling import *
from burn.functions.nn.rectifier import *
from burn.functions.nn.recurrent import *
from burn.functions.nn.resampling import *
from burn.functions.nn.rotary import *
from burn.functions.nn.shrinkage import *
from burn.functions.nn.softmax import *
from burn.functions.nn.transducer_loss import *
from burn.functions.nn.transposed_convolution import *
from burn.functions.nn.unfolding import *
from burn.public_calls import exports as _exports

_exports(globals())


def __dir__() -> list[str]:
    return sorted(name for name in globals() if name[0].isalpha())
