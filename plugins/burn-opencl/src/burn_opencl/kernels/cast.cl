// Conversion from one dtype to another: S is the C type of the source.

typedef struct {
    long n, offset, source, target;
} Parameters;
#ifndef SOURCE
#define SOURCE ((int)parameters.source)
#define TARGET ((int)parameters.target)
#endif

#if FROM_FLOATING && !IS_FLOATING
// Truncated towards 0 and saturated; NaN becomes 0.
#define SATURATED(low, limit, high) \
    (x != x ? (C)0 : x >= (S)(limit) ? (C)(high) : x < (S)(low) ? (C)(low) : (C)x)
inline C converted(S x, int type) {
    switch (type) {
        case BOOL: return x != (S)0;
        case INT8: return SATURATED(-128, 128, 127);
        case INT16: return SATURATED(-32768, 32768, 32767);
        case INT32: return SATURATED(-2147483648L, 2147483648L, 2147483647L);
        case INT64:
            return SATURATED(-0x7fffffffffffffffL - 1, 0x8000000000000000UL, 0x7fffffffffffffffL);
        case UINT8: return SATURATED(0, 256, 255);
        case UINT16: return SATURATED(0, 65536, 65535);
        case UINT32: return SATURATED(0, 4294967296L, 4294967295L);
        default:
            return x != x || x <= (S)0 ? (C)0
                : x >= (S)2 * (S)0x8000000000000000UL ? (C)0xffffffffffffffffUL : (C)(ulong)x;
    }
}
#else
inline C converted(S x, int type) { return (C)x; }
#endif

KERNEL(GROUP_SIZE)
void cast(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const S value = CONCAT(read_, S)(x, parameters.offset + i, SOURCE);
    WRITE(out, i, TARGET, converted(value, TARGET));
}
