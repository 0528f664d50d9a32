"""The arithmetic of dispatch-level type ids."""

import pytest

from burn.device_id import BACKEND_IDS, FIRST_FOREIGN_ID, decode_type_id, encode_type_id
from burn.errors import ArgumentError


@pytest.mark.parametrize("backend_id", [0, 1, 12, 128, 255])
@pytest.mark.parametrize("type_id", [0, 3, 255])
def test_encoding_and_decoding_are_inverse(backend_id, type_id):
    assert decode_type_id(encode_type_id(backend_id, type_id)) == (backend_id, type_id)


@pytest.mark.parametrize("pair", [(256, 0), (-1, 0), (0, 256), (0, -1)])
def test_a_number_beyond_8_bits_is_refused_and_never_truncated(pair):
    with pytest.raises(ArgumentError, match="8 bits"):
        encode_type_id(*pair)


@pytest.mark.parametrize("type_id", [-1, 1 << 16])
def test_a_type_id_beyond_16_bits_is_refused(type_id):
    with pytest.raises(ArgumentError, match="16 bits"):
        decode_type_id(type_id)


def test_our_backends_have_fixed_ids_below_those_of_third_parties():
    assert BACKEND_IDS["cpu"] == 0
    assert BACKEND_IDS["cuda"] == 1
    assert BACKEND_IDS["torch"] == 5
    assert BACKEND_IDS["opencl"] == 12
    assert max(BACKEND_IDS.values()) < FIRST_FOREIGN_ID
