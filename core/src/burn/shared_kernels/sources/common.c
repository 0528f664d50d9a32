// What precedes every shared source, after the header of a dialect: reads and writes of elements of all
// dtypes, as one of the four types that kernels compute in: float, double, int64 and uint64. `type` is
// the code of a dtype; where it is a constant, the compiler keeps one case.

#define BOOL 0
#define INT8 1
#define INT16 2
#define INT32 3
#define INT64 4
#define UINT8 5
#define UINT16 6
#define UINT32 7
#define UINT64 8
#define FLOAT16 9
#define BFLOAT16 10
#define FLOAT32 11
#define FLOAT64 12
#define SCALAR_TYPE 13

#define AS(T, p) ((GLOBAL T*)(p))
#define CONCAT_EXPANDED(a, b) a##b
#define CONCAT(a, b) CONCAT_EXPANDED(a, b)

#ifndef BFLOAT16_BITS
#define BFLOAT16_BITS(x) bfloat16_bits(x)
FUNCTION ushort bfloat16_bits(float x) {
    const uint bits = FLOAT_AS_UINT(x);
    if (x != x) return (ushort)((bits >> 16) | 0x40u);
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#endif

FUNCTION float read_float(GLOBAL const void* p, int64 i, int type) {
    switch (type) {
        case FLOAT16: return READ_HALF(p, i);
        case BFLOAT16: return UINT_AS_FLOAT((uint)AS(const ushort, p)[i] << 16);
        default: return AS(const float, p)[i];
    }
}
FUNCTION void write_float(GLOBAL void* p, int64 i, int type, float x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0.0f; break;
        case FLOAT16: WRITE_HALF(p, i, x); break;
        case BFLOAT16: AS(ushort, p)[i] = BFLOAT16_BITS(x); break;
        default: AS(float, p)[i] = x;
    }
}
FUNCTION float scalar_float(uint64 bits) { return UINT_AS_FLOAT((uint)bits); }

#ifdef HAS_FP64
FUNCTION double read_double(GLOBAL const void* p, int64 i, int type) {
    switch (type) {
        case FLOAT16: case BFLOAT16: case FLOAT32: return (double)read_float(p, i, type);
        default: return AS(const double, p)[i];
    }
}
FUNCTION void write_double(GLOBAL void* p, int64 i, int type, double x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0.0; break;
        case FLOAT16: case BFLOAT16: case FLOAT32: write_float(p, i, type, (float)x); break;
        default: AS(double, p)[i] = x;
    }
}
FUNCTION double scalar_double(uint64 bits) { return ULONG_AS_DOUBLE(bits); }
#endif

FUNCTION int64 read_long(GLOBAL const void* p, int64 i, int type) {
    switch (type) {
        case INT8: return AS(const signed char, p)[i];
        case INT16: return AS(const short, p)[i];
        case INT32: return AS(const int, p)[i];
        case UINT8: case BOOL: return AS(const uchar, p)[i];
        case UINT16: return AS(const ushort, p)[i];
        case UINT32: return AS(const uint, p)[i];
        default: return AS(const int64, p)[i];
    }
}
FUNCTION uint64 read_ulong(GLOBAL const void* p, int64 i, int type) {
    return (uint64)read_long(p, i, type);
}
FUNCTION void write_ulong(GLOBAL void* p, int64 i, int type, uint64 x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0; break;
        case INT8: case UINT8: AS(uchar, p)[i] = (uchar)x; break;
        case INT16: case UINT16: AS(ushort, p)[i] = (ushort)x; break;
        case INT32: case UINT32: AS(uint, p)[i] = (uint)x; break;
        default: AS(uint64, p)[i] = x;
    }
}
FUNCTION void write_long(GLOBAL void* p, int64 i, int type, int64 x) {
    write_ulong(p, i, type, (uint64)x);
}
FUNCTION int64 scalar_long(uint64 bits) { return (int64)bits; }
FUNCTION uint64 scalar_ulong(uint64 bits) { return bits; }

// Elements of a vector of 64 bytes, of which kernels for CPUs make use.
#if IS_DOUBLE
#define VECTOR_WIDTH 8
#else
#define VECTOR_WIDTH 16
#endif

// C is the type that a kernel computes in, KIND its name in functions: float, double, long or ulong.
#ifdef C
#define READ CONCAT(read_, KIND)
#define WRITE CONCAT(write_, KIND)
#define SCALAR CONCAT(scalar_, KIND)

FUNCTION C maximum(C x, C y) { return x != x ? x : (y != y ? y : (x < y ? y : x)); }
FUNCTION C minimum(C x, C y) { return x != x ? x : (y != y ? y : (y < x ? y : x)); }

// Ways to combine two elements.
#define SUM 0
#define PRODUCT 1
#define MAX 2
#define MIN 3
#define ANY 4
#define ALL 5
#define ASSIGN 6

FUNCTION C combined(int op, C x, C y) {
    switch (op) {
        case SUM: return x + y;
        case PRODUCT: return x * y;
        case MAX: case ANY: return maximum(x, y);
        case ASSIGN: return y;
        default: return minimum(x, y);
    }
}
#endif

// Bounds of part number `item` % parts of row number `item` / parts, of which each has n elements.
#define PART_OF_ROW(item)                                                        \
    const int64 n = parameters.n, part = (item) % parameters.parts;               \
    const int64 row = (item) / parameters.parts, first = part * parameters.chunk; \
    const int64 stop = first + parameters.chunk < n ? first + parameters.chunk : n;

// Negative indices count from the end, those of labels do not. For one that is out of range the result is -1, and the index
// error is written for the host: number of the op, index, length of the axis. That of an earlier
// kernel stays, for what is computed after it may have indices from memory that was not written.
FUNCTION int64 checked_index_or_label(
    uint64 bits, int type, int64 length, int is_label, GLOBAL volatile int64* error, int64 op) {
    const int64 index = type == UINT64 && bits >> 63 ? 0x7fffffffffffffff : (int64)bits;
    if (index >= 0 && index < length) return index;
    if (!is_label && index < 0 && index >= -length) return index + length;
    if (!error[0]) {
        error[1] = index;
        error[2] = length;
        error[0] = op;
    }
    return -1;
}
FUNCTION int64 checked_index(
    uint64 bits, int type, int64 length, GLOBAL volatile int64* error, int64 op) {
    return checked_index_or_label(bits, type, length, 0, error, op);
}

// Quotient of a dividend below 2^31 by a divisor whose factor and shift the host has computed (Granlund
// and Montgomery, 1994). The lower half of `divider` is the factor, the upper the shift.
FUNCTION uint quotient_by(uint x, uint64 divider) {
    return (MUL_HI(x, (uint)divider) + x) >> (uint)(divider >> 32);
}
