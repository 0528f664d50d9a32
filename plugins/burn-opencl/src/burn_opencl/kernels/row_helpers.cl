// Rows of elements. An item of a CPU computes a row in vectors of 64 bytes, of which the last one is
// padded. On a GPU, LANES items of a group share a row: neighbouring lanes read neighbouring elements,
// or vectors of four (BY_VEC4).

#if IS_DOUBLE
#define WIDE_TYPE FLOAT64
#else
#define WIDE_TYPE FLOAT32
#endif

#if IS_CPU
#define V CONCAT(C, VECTOR_WIDTH)
#define SHARED
#define ACROSS_LANES(function, v) function(v)

inline V load_vector(GLOBAL const void* p, long index, long left, int type, C fill) {
    if (left >= VECTOR_WIDTH && type == WIDE_TYPE)
        return CONCAT(vload, VECTOR_WIDTH)(0, AS(const C, p) + index);
    C values[VECTOR_WIDTH];
    for (int j = 0; j < VECTOR_WIDTH; ++j) values[j] = j < left ? READ(p, index + j, type) : fill;
    return CONCAT(vload, VECTOR_WIDTH)(0, values);
}
inline void store_vector(GLOBAL void* p, long index, long left, int type, V x) {
    if (left >= VECTOR_WIDTH && type == WIDE_TYPE) {
        CONCAT(vstore, VECTOR_WIDTH)(x, 0, AS(C, p) + index);
        return;
    }
    C values[VECTOR_WIDTH];
    CONCAT(vstore, VECTOR_WIDTH)(x, 0, values);
    for (int j = 0; j < VECTOR_WIDTH && j < left; ++j) WRITE(p, index + j, type, values[j]);
}
inline C row_sum(V x) {
    C values[VECTOR_WIDTH];
    CONCAT(vstore, VECTOR_WIDTH)(x, 0, values);
    C sum = values[0];
    for (int j = 1; j < VECTOR_WIDTH; ++j) sum += values[j];
    return sum;
}
inline C row_max(V x) {
    C values[VECTOR_WIDTH];
    CONCAT(vstore, VECTOR_WIDTH)(x, 0, values);
    C largest = values[0];
    for (int j = 1; j < VECTOR_WIDTH; ++j) largest = fmax(largest, values[j]);
    return largest;
}
#else
#if BY_VEC4
#define V VEC4
#define V_WIDTH 4
#define READ_V READ_VEC4
#define WRITE_V WRITE_VEC4
#define SUM_OF_V(v) ((v.x + v.y) + (v.z + v.w))
#define MAX_OF_V(v) fmax(fmax(v.x, v.y), fmax(v.z, v.w))
#else
#define V C
#define V_WIDTH 1
#define READ_V READ
#define WRITE_V WRITE
#define SUM_OF_V(v) v
#define MAX_OF_V(v) v
#endif
#define ROW_LANE (LANE % LANES)
#define SHARED LOCAL C shared[GROUP_SIZE] ALIGNED;
#define ACROSS_LANES(function, v) function(v, shared + LANE / LANES * LANES)

// Combines the values of the lanes of a row: in halves down to LAST_LANES, then by every lane.
#define LAST_LANES (LANES < 8 ? LANES : 8)
#define COMBINE_LANES(function, own)                                                \
    shared[ROW_LANE] = own;                                                         \
    UNROLL for (int step = LANES / 2; step >= LAST_LANES; step /= 2) {              \
        BARRIER;                                                                    \
        if (ROW_LANE < step)                                                        \
            shared[ROW_LANE] = function(shared[ROW_LANE], shared[ROW_LANE + step]); \
    }                                                                               \
    BARRIER;                                                                        \
    C all = shared[0];                                                              \
    UNROLL for (int j = 1; j < LAST_LANES; ++j) all = function(all, shared[j]);     \
    BARRIER;                                                                        \
    return all;
#define PLUS(x, y) ((x) + (y))

inline C row_sum(V own, LOCAL C* shared) { COMBINE_LANES(PLUS, SUM_OF_V(own)) }
inline C row_max(V own, LOCAL C* shared) { COMBINE_LANES(fmax, MAX_OF_V(own)) }
#endif
