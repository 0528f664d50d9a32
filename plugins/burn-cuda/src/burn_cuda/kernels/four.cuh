// READ_FOUR and WRITE_FOUR: four neighbours in one access, whatever their dtype.

#define READ_FOUR read_four
#define WRITE_FOUR write_four

template <class T>
struct alignas(4 * sizeof(T)) Four {
    T values[4];
};
template <class T>
FUNCTION void read_words(const void* p, int64 i, int type, C* x) {
    const Four<T> four = ((const Four<T>*)p)[i / 4];
    UNROLL for (int j = 0; j < 4; ++j) x[j] = READ(&four, j, type);
}
template <class T>
FUNCTION void write_words(void* p, int64 i, int type, const C* x) {
    Four<T> four;
    UNROLL for (int j = 0; j < 4; ++j) WRITE(&four, j, type, x[j]);
    ((Four<T>*)p)[i / 4] = four;
}
FUNCTION void read_four(const void* p, int64 i, int type, C* x) {
    switch (type) {
        case BOOL: case INT8: case UINT8: return read_words<uchar>(p, i, type, x);
        case INT16: case UINT16: case FLOAT16: case BFLOAT16: return read_words<ushort>(p, i, type, x);
        case INT32: case UINT32: case FLOAT32: return read_words<uint>(p, i, type, x);
        default: return read_words<uint64>(p, i, type, x);
    }
}
FUNCTION void write_four(void* p, int64 i, int type, const C* x) {
    switch (type) {
        case BOOL: case INT8: case UINT8: return write_words<uchar>(p, i, type, x);
        case INT16: case UINT16: case FLOAT16: case BFLOAT16: return write_words<ushort>(p, i, type, x);
        case INT32: case UINT32: case FLOAT32: return write_words<uint>(p, i, type, x);
        default: return write_words<uint64>(p, i, type, x);
    }
}
