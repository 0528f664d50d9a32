// Elements of all dtypes, read into and written from the four types that are computed in: float,
// double, long and ulong. TYPE is the number of a dtype; where it is a constant, one branch stays.

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
#define NUMBER 13

#define AS(T, p) ((GLOBAL T*)(p))
#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)

inline ushort bfloat_of(float x) {
    const uint bits = BITS_OF_FLOAT(x);
    if (x != x) return (ushort)((bits >> 16) | 0x40u);
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float read_float(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case FLOAT16: return READ_HALF(p, i);
        case BFLOAT16: return FLOAT_OF_BITS((uint)AS(const ushort, p)[i] << 16);
        default: return AS(const float, p)[i];
    }
}
inline void write_float(GLOBAL void* p, long i, int type, float x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0.0f; break;
        case FLOAT16: WRITE_HALF(p, i, x); break;
        case BFLOAT16: AS(ushort, p)[i] = bfloat_of(x); break;
        default: AS(float, p)[i] = x;
    }
}
inline float number_float(ulong bits) { return FLOAT_OF_BITS((uint)bits); }

#ifdef HAS_FP64
inline double read_double(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case FLOAT16: case BFLOAT16: case FLOAT32: return (double)read_float(p, i, type);
        default: return AS(const double, p)[i];
    }
}
inline void write_double(GLOBAL void* p, long i, int type, double x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0.0; break;
        case FLOAT16: case BFLOAT16: case FLOAT32: write_float(p, i, type, (float)x); break;
        default: AS(double, p)[i] = x;
    }
}
inline double number_double(ulong bits) { return DOUBLE_OF_BITS(bits); }
#endif

inline long read_long(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case INT8: return AS(const char, p)[i];
        case INT16: return AS(const short, p)[i];
        case INT32: return AS(const int, p)[i];
        case UINT8: case BOOL: return AS(const uchar, p)[i];
        case UINT16: return AS(const ushort, p)[i];
        case UINT32: return AS(const uint, p)[i];
        default: return AS(const long, p)[i];
    }
}
inline ulong read_ulong(GLOBAL const void* p, long i, int type) {
    return (ulong)read_long(p, i, type);
}
inline void write_ulong(GLOBAL void* p, long i, int type, ulong x) {
    switch (type) {
        case BOOL: AS(uchar, p)[i] = x != 0; break;
        case INT8: case UINT8: AS(uchar, p)[i] = (uchar)x; break;
        case INT16: case UINT16: AS(ushort, p)[i] = (ushort)x; break;
        case INT32: case UINT32: AS(uint, p)[i] = (uint)x; break;
        default: AS(ulong, p)[i] = x;
    }
}
inline void write_long(GLOBAL void* p, long i, int type, long x) {
    write_ulong(p, i, type, (ulong)x);
}
inline long number_long(ulong bits) { return (long)bits; }
inline ulong number_ulong(ulong bits) { return bits; }

// C is the type that a kernel computes in.
#ifdef C
#define READ JOIN(read_, C)
#define WRITE JOIN(write_, C)
#define OF_NUMBER JOIN(number_, C)

inline C larger(C x, C y) { return x != x ? x : (y != y ? y : (x < y ? y : x)); }
inline C smaller(C x, C y) { return x != x ? x : (y != y ? y : (y < x ? y : x)); }
#endif

// An index from the end counts back. One out of range leaves a note, and -1.
inline long index_in(ulong bits, int type, long length, GLOBAL long* note, long call) {
    const long index = type == UINT64 && bits >> 63 ? 0x7fffffffffffffffL : (long)bits;
    if (index >= 0 && index < length) return index;
    if (index < 0 && index >= -length) return index + length;
    note[1] = index;
    note[2] = length;
    note[0] = call;
    return -1;
}
