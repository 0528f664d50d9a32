// Codes of quantized tensors and their scales. A code is an integer in two's complement, or the bits of a
// float of a format.

#define INTEGERS 0
#define E4M3 1
#define E5M2 2
#define E2M1 3

// Dtypes of scales beside those of floats.
#define UE8M0 14
#define UE4M3 15

#define EXPONENT_BITS(format) ((format) == E4M3 ? 4 : (format) == E5M2 ? 5 : 2)
#define MANTISSA_BITS(format) ((format) == E4M3 ? 3 : (format) == E5M2 ? 2 : 1)
#define LEAST_EXPONENT(format) ((format) == E4M3 ? -6 : (format) == E5M2 ? -14 : 0)

// The number whose bits are the highest of t, below which there may be others. No step computes with
// subnormal numbers of float32, which some devices flush.
#define DEFINE_DECODED(NAME, F, U, AS_F, AS_U, AS_NUMBER)                                 \
    inline F NAME(U t, int format) {                                                      \
        const uint bias = 126 + LEAST_EXPONENT(format);                                   \
        const uint mask = format == E2M1 ? 0x70000000u : 0x7f000000u;                     \
        const U bits = (t & mask) >> (8 - EXPONENT_BITS(format));                         \
        const F subnormal = AS_NUMBER(bits) * UINT_AS_FLOAT((bias - 22) << 23);           \
        F x = select(AS_F(bits + (bias << 23)), subnormal, bits < 0x00800000u);           \
        if (format == E4M3) x = select(x, (F)NAN, bits == 0x07f00000u);                   \
        if (format == E5M2) x = select(x, AS_F(bits | 0x7f800000u), bits >= 0x0f800000u); \
        return AS_F(AS_U(x) | (t & 0x80000000u));                                         \
    }
DEFINE_DECODED(decoded, float, uint, as_float, as_uint, convert_float)

// Number j of the codes of a word, the first of which is in the lowest bits.
inline float code_of(uint word, int j, int bits, int format) {
    const uint t = word << (32 - bits - bits * j);
    if (format == INTEGERS) return (float)((int)t >> (32 - bits));
    return decoded(format == E2M1 && bits == 8 ? t << 4 : t, format);
}

inline float scale_at(GLOBAL const void* p, long i, int type) {
    if (type == UE4M3) return decoded((uint)AS(const uchar, p)[i] << 24, E4M3);
    if (type != UE8M0) return read_float(p, i, type);
    const uint exponent = AS(const uchar, p)[i];
    return UINT_AS_FLOAT(exponent == 255 ? 0x7fc00000u : exponent ? exponent << 23 : 0x00400000u);
}

#ifdef CODES_AT
// 16 codes, the first of which begins a byte.
DEFINE_DECODED(decoded_16, float16, uint16, as_float16, as_uint16, convert_float16)

inline float16 codes_at(GLOBAL const uchar* p) {
#if CODE_BITS == 8
    if (FORMAT == INTEGERS) return convert_float16(vload16(0, (GLOBAL const char*)p));
    const uint16 t = convert_uint16(vload16(0, p)) << (FORMAT == E2M1 ? 28 : 24);
#elif CODE_BITS == 4
    const uint16 t = as_uint2(vload8(0, p)).s0000000011111111
                     << (uint16)(28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
#else
    const uint16 t = (uint16)(as_uint(vload4(0, p)))
                     << (uint16)(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
#endif
    if (FORMAT == INTEGERS) return convert_float16(as_int16(t) >> (32 - CODE_BITS));
    return decoded_16(t, FORMAT);
}
#endif
