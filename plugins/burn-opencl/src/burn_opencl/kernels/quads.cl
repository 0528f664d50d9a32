// Four elements at once, from a place that is a multiple of four: what memory of GPUs likes best.

#define QUAD JOIN(C, 4)
#define READ_QUAD JOIN(read_quad_, C)
#define WRITE_QUAD JOIN(write_quad_, C)
#define GET_QUAD(p) JOIN(vload, 4)(0, p)
#define PUT_QUAD(x, p) JOIN(vstore, 4)(x, 0, p)
#define AT(T, p, i) (*((GLOBAL const T*)(p) + (i) / 4))
#define PUT(T, p, i) (*((GLOBAL T*)(p) + (i) / 4))

inline float4 read_quad_float(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case FLOAT16: return READ_HALVES(p, i / 4);
        case BFLOAT16: return FLOATS_OF_BITS(convert_uint4(AT(ushort4, p, i)) << 16);
        default: return AT(float4, p, i);
    }
}
inline void write_quad_float(GLOBAL void* p, long i, int type, float4 x) {
    switch (type) {
        case BOOL: PUT(uchar4, p, i) = convert_uchar4((x != 0.0f) & 1); break;
        case FLOAT16: WRITE_HALVES(p, i / 4, x); break;
        case BFLOAT16:
            PUT(ushort4, p, i) =
                (ushort4)(bfloat_of(x.x), bfloat_of(x.y), bfloat_of(x.z), bfloat_of(x.w));
            break;
        default: PUT(float4, p, i) = x;
    }
}

#ifdef HAS_FP64
inline double4 read_quad_double(GLOBAL const void* p, long i, int type) {
    if (type == FLOAT64) return AT(double4, p, i);
    return convert_double4(read_quad_float(p, i, type));
}
inline void write_quad_double(GLOBAL void* p, long i, int type, double4 x) {
    switch (type) {
        case BOOL: PUT(uchar4, p, i) = convert_uchar4((x != 0.0) & 1); break;
        case FLOAT64: PUT(double4, p, i) = x; break;
        default: write_quad_float(p, i, type, convert_float4(x));
    }
}
#endif

inline long4 read_quad_long(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case INT8: return convert_long4(AT(char4, p, i));
        case INT16: return convert_long4(AT(short4, p, i));
        case INT32: return convert_long4(AT(int4, p, i));
        case UINT8: case BOOL: return convert_long4(AT(uchar4, p, i));
        case UINT16: return convert_long4(AT(ushort4, p, i));
        case UINT32: return convert_long4(AT(uint4, p, i));
        default: return AT(long4, p, i);
    }
}
inline void write_quad_long(GLOBAL void* p, long i, int type, long4 x) {
    switch (type) {
        case BOOL: PUT(uchar4, p, i) = convert_uchar4((x != 0) & 1); break;
        case INT8: case UINT8: PUT(uchar4, p, i) = convert_uchar4(x & 0xff); break;
        case INT16: case UINT16: PUT(ushort4, p, i) = convert_ushort4(x & 0xffff); break;
        case INT32: case UINT32: PUT(uint4, p, i) = convert_uint4(x & 0xffffffffL); break;
        default: PUT(long4, p, i) = x;
    }
}
inline ulong4 read_quad_ulong(GLOBAL const void* p, long i, int type) {
    return UNSIGNED_QUAD(read_quad_long(p, i, type));
}
inline void write_quad_ulong(GLOBAL void* p, long i, int type, ulong4 x) {
    write_quad_long(p, i, type, SIGNED_QUAD(x));
}
