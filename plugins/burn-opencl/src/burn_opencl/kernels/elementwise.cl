// Elementwise operations on operands that broadcast, in five variants: a general one for small
// tensors, and four in which OP and the types are constants: along rows for a CPU (ITEM_ELEMENTS), and
// for a GPU by vectors of four elements (LOAD_VEC4S), by tiles for operands that are contiguous along
// another axis than the result (TILES), and element by element.

typedef struct {
    long n;
    long lengths[8];
    long strides[OPERANDS + 1][8];
    long offsets[OPERANDS + 1];
    ulong scalars[OPERANDS];
    int types[OPERANDS + 1];
    int rank;
    int op;
} Parameters;

#ifndef OP
#define OP parameters.op
#define TYPE(k) parameters.types[k]
#else
#define TYPE(k) CONCAT(TYPE_, k)
#endif

// Indices into the memory of the operands and the result, from the number of an element in order.
#define LOCATE_IN(T, indices, number, rank)                        \
    {                                                              \
        T rest = number;                                           \
        for (int d = (rank) - 1; d >= 0; --d) {                    \
            const T length = parameters.lengths[d];                \
            const T quotient = d ? rest / length : 0;              \
            const long position = rest - quotient * length;        \
            rest = quotient;                                       \
            for (int k = 0; k <= OPERANDS; ++k)                    \
                indices[k] += position * parameters.strides[k][d]; \
        }                                                          \
    }
#define LOCATE(indices, number, rank)                                       \
    for (int k = 0; k <= OPERANDS; ++k) indices[k] = parameters.offsets[k]; \
    if (parameters.n >> 31)                                                 \
        LOCATE_IN(ulong, indices, number, rank)                             \
    else                                                                    \
        LOCATE_IN(uint, indices, number, rank)

#if defined(ITEM_ELEMENTS)

#define VALUE(k) \
    (TYPE(k) == SCALAR_TYPE ? scalars[k] : READ(p##k, indices[k] + i * CONCAT(STRIDE_, k), TYPE(k)))

// An item computes a part of a long row, or several short rows.
KERNEL(1) void elementwise(const Parameters parameters, MEMORIES, GLOBAL void* restrict out) {
    const int last = parameters.rank - 1;
    const long inner = parameters.lengths[last], outer = parameters.n / inner;
    const long parts = (inner + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS;
    const long rows = inner < ITEM_ELEMENTS ? ITEM_ELEMENTS / inner : 1;
    const long first = ITEM % parts * ITEM_ELEMENTS, begin = ITEM / parts * rows;
    const long end = begin + rows < outer ? begin + rows : outer;
    const long count = inner - first < ITEM_ELEMENTS ? inner - first : ITEM_ELEMENTS;
    long strides[OPERANDS + 1];
    C scalars[OPERANDS];
    for (int k = 0; k <= OPERANDS; ++k) strides[k] = parameters.strides[k][last];
    for (int k = 0; k < OPERANDS; ++k) scalars[k] = SCALAR(parameters.scalars[k]);
    for (long row = begin; row < end; ++row) {
        long indices[OPERANDS + 1];
        LOCATE(indices, row, last)
        for (int k = 0; k <= OPERANDS; ++k) indices[k] += first * strides[k];
        for (long i = 0; i < count; ++i)
            WRITE(out, indices[OPERANDS] + i * CONCAT(STRIDE_, OPERANDS), TYPE(OPERANDS),
                  applied(OP, VALUES));
    }
}

#elif defined(LOAD_VEC4S)

// An item computes four neighbours; rows have a multiple of four elements, or there is one row.
#define VALUE(k)                                            \
    (TYPE(k) == SCALAR_TYPE ? SCALAR(parameters.scalars[k]) \
                       : READ(p##k, indices[k] + i * CONCAT(STRIDE_, k), TYPE(k)))
#define OPERAND_VEC4(k)                                                  \
    (TYPE(k) == SCALAR_TYPE ? (VEC4)(SCALAR(parameters.scalars[k]))      \
     : CONCAT(STRIDE_, k) == 1 ? READ_VEC4(p##k, indices[k], TYPE(k))    \
     : CONCAT(STRIDE_, k) == 0 ? (VEC4)(READ(p##k, indices[k], TYPE(k))) \
     : (VEC4)(READ(p##k, indices[k], TYPE(k)),                           \
              READ(p##k, indices[k] + CONCAT(STRIDE_, k), TYPE(k)),      \
              READ(p##k, indices[k] + 2 * CONCAT(STRIDE_, k), TYPE(k)),  \
              READ(p##k, indices[k] + 3 * CONCAT(STRIDE_, k), TYPE(k))))

KERNEL(GROUP_SIZE) void elementwise(const Parameters parameters, MEMORIES, GLOBAL void* restrict out) {
    const long first = 4 * ITEM;
    if (first >= parameters.n) return;
    long strides[OPERANDS + 1], indices[OPERANDS + 1];
    for (int k = 0; k <= OPERANDS; ++k) strides[k] = parameters.strides[k][RANK - 1];
    LOCATE(indices, first, RANK)
    if (first + 4 <= parameters.n) {
        LOAD_VEC4S
        const VEC4 result = (VEC4)(COMPONENT(x), COMPONENT(y), COMPONENT(z), COMPONENT(w));
        WRITE_VEC4(out, indices[OPERANDS], TYPE(OPERANDS), result);
        return;
    }
    for (long i = 0; i < parameters.n - first; ++i)
        WRITE(out, indices[OPERANDS] + i, TYPE(OPERANDS), applied(OP, VALUES));
}

#elif defined(TILES)

// A tile has 32 elements along each of the last two axes. Operands that are contiguous along the second
// last axis are read along it into local memory, and from there along the last axis.
#define TILE_STRIDE(k, d) parameters.strides[k][RANK - 2 + (d)]
#define VALUE(k)                                            \
    (TYPE(k) == SCALAR_TYPE ? SCALAR(parameters.scalars[k]) \
                       : READ(p##k, indices[k] + (y + j) * TILE_STRIDE(k, 0) + x * TILE_STRIDE(k, 1), \
                               TYPE(k)))
#define LOAD_TILE(k)    \
    tile##k[y + j][x] = \
        READ(p##k, indices[k] + x * TILE_STRIDE(k, 0) + (y + j) * TILE_STRIDE(k, 1), TYPE(k));

KERNEL(GROUP_SIZE) void elementwise(const Parameters parameters, MEMORIES, GLOBAL void* restrict out) {
    TILES
    const long height = parameters.lengths[RANK - 2], width = parameters.lengths[RANK - 1];
    const long tile_rows = (height + 31) / 32, tile_columns = (width + 31) / 32;
    const long above = GROUP / tile_columns;
    const long row = above % tile_rows * 32, column = GROUP % tile_columns * 32;
    const int x = LANE % 32, y = LANE / 32;
    long indices[OPERANDS + 1];
    LOCATE(indices, above / tile_rows, RANK - 2)
    for (int k = 0; k <= OPERANDS; ++k) indices[k] += row * TILE_STRIDE(k, 0) + column * TILE_STRIDE(k, 1);
    UNROLL for (int j = 0; j < 32; j += GROUP_SIZE / 32)
        if (row + x < height && column + y + j < width) {
            LOAD_TILES
        }
    BARRIER;
    UNROLL for (int j = 0; j < 32; j += GROUP_SIZE / 32)
        if (row + y + j < height && column + x < width)
            WRITE(out, indices[OPERANDS] + (y + j) * TILE_STRIDE(OPERANDS, 0) + x, TYPE(OPERANDS),
                  applied(OP, VALUES));
}

#else

// An item computes several elements, a group apart, so that neighbouring items access neighbouring
// memory.
#ifdef RANK
#define ELEMENTS_PER_ITEM 4
#else
#define ELEMENTS_PER_ITEM 1
#define RANK parameters.rank
#endif
#define VALUE(k) (TYPE(k) == SCALAR_TYPE ? SCALAR(parameters.scalars[k]) : READ(p##k, indices[k], TYPE(k)))

KERNEL(GROUP_SIZE) void elementwise(const Parameters parameters, MEMORIES, GLOBAL void* restrict out) {
    UNROLL for (int j = 0; j < ELEMENTS_PER_ITEM; ++j) {
        const long i = (GROUP * ELEMENTS_PER_ITEM + j) * GROUP_SIZE + LANE;
        if (i >= parameters.n) return;
        long indices[OPERANDS + 1];
        LOCATE(indices, i, RANK)
        WRITE(out, indices[OPERANDS], TYPE(OPERANDS), applied(OP, VALUES));
    }
}

#endif
