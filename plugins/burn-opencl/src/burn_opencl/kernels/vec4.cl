// Aligned vectors of four elements, by which GPUs reach the full bandwidth of their memory.

#define VEC4 CONCAT(C, 4)
#define READ_VEC4 CONCAT(read_quad_, C)
#define WRITE_VEC4 CONCAT(write_quad_, C)
#define READ_FOUR(p, i, type, x) STORE_VEC4(READ_VEC4(p, i, type), x)
#define WRITE_FOUR(p, i, type, x) WRITE_VEC4(p, i, type, LOAD_VEC4(x))
#define LOAD_VEC4(p) CONCAT(vload, 4)(0, p)
#define STORE_VEC4(x, p) CONCAT(vstore, 4)(x, 0, p)
#define VECTOR_AT(T, p, i) (*((GLOBAL const T*)(p) + (i) / 4))
#define WRITABLE_VECTOR_AT(T, p, i) (*((GLOBAL T*)(p) + (i) / 4))

inline float4 read_quad_float(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case FLOAT16: return READ_HALF4(p, i / 4);
        case BFLOAT16: return UINT4_AS_FLOAT4(convert_uint4(VECTOR_AT(ushort4, p, i)) << 16);
        default: return VECTOR_AT(float4, p, i);
    }
}
inline void write_quad_float(GLOBAL void* p, long i, int type, float4 x) {
    switch (type) {
        case BOOL: WRITABLE_VECTOR_AT(uchar4, p, i) = convert_uchar4((x != 0.0f) & 1); break;
        case FLOAT16: WRITE_HALF4(p, i / 4, x); break;
        case BFLOAT16:
            WRITABLE_VECTOR_AT(ushort4, p, i) =
                (ushort4)(bfloat16_bits(x.x), bfloat16_bits(x.y), bfloat16_bits(x.z), bfloat16_bits(x.w));
            break;
        default: WRITABLE_VECTOR_AT(float4, p, i) = x;
    }
}

#ifdef HAS_FP64
inline double4 read_quad_double(GLOBAL const void* p, long i, int type) {
    if (type == FLOAT64) return VECTOR_AT(double4, p, i);
    return convert_double4(read_quad_float(p, i, type));
}
inline void write_quad_double(GLOBAL void* p, long i, int type, double4 x) {
    switch (type) {
        case BOOL: WRITABLE_VECTOR_AT(uchar4, p, i) = convert_uchar4((x != 0.0) & 1); break;
        case FLOAT64: WRITABLE_VECTOR_AT(double4, p, i) = x; break;
        default: write_quad_float(p, i, type, convert_float4(x));
    }
}
#endif

inline long4 read_quad_long(GLOBAL const void* p, long i, int type) {
    switch (type) {
        case INT8: return convert_long4(VECTOR_AT(char4, p, i));
        case INT16: return convert_long4(VECTOR_AT(short4, p, i));
        case INT32: return convert_long4(VECTOR_AT(int4, p, i));
        case UINT8: case BOOL: return convert_long4(VECTOR_AT(uchar4, p, i));
        case UINT16: return convert_long4(VECTOR_AT(ushort4, p, i));
        case UINT32: return convert_long4(VECTOR_AT(uint4, p, i));
        default: return VECTOR_AT(long4, p, i);
    }
}
inline void write_quad_long(GLOBAL void* p, long i, int type, long4 x) {
    switch (type) {
        case BOOL: WRITABLE_VECTOR_AT(uchar4, p, i) = convert_uchar4((x != 0) & 1); break;
        case INT8: case UINT8: WRITABLE_VECTOR_AT(uchar4, p, i) = convert_uchar4(x & 0xff); break;
        case INT16: case UINT16: WRITABLE_VECTOR_AT(ushort4, p, i) = convert_ushort4(x & 0xffff); break;
        case INT32: case UINT32: WRITABLE_VECTOR_AT(uint4, p, i) = convert_uint4(x & 0xffffffffL); break;
        default: WRITABLE_VECTOR_AT(long4, p, i) = x;
    }
}
inline ulong4 read_quad_ulong(GLOBAL const void* p, long i, int type) {
    return AS_ULONG4(read_quad_long(p, i, type));
}
inline void write_quad_ulong(GLOBAL void* p, long i, int type, ulong4 x) {
    write_quad_long(p, i, type, AS_LONG4(x));
}
