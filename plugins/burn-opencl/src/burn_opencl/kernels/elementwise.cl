// One operation at each place of operands that broadcast. There are five forms: the general one,
// those for large tensors (OP and the types are constants), and among them one that goes along rows
// for a CPU (BLOCK), and for a GPU one that takes four elements at once (FOURS) and one in tiles, for
// operands in which neighbours lie along another axis than in the result (TURNED).

typedef struct {
    long n;
    long lengths[8];
    long strides[OPERANDS + 1][8];
    long starts[OPERANDS + 1];
    ulong numbers[OPERANDS];
    int types[OPERANDS + 1];
    int rank;
    int op;
} Layout;

#ifndef OP
#define OP layout.op
#define TYPE(k) layout.types[k]
#else
#define TYPE(k) JOIN(TYPE_, k)
#endif

// What lies where: the places of an item, from its number and the lengths of the axes.
#define LOCATE_IN(T, places, number, rank)                            \
    {                                                                 \
        T rest = number;                                              \
        for (int d = (rank) - 1; d >= 0; --d) {                       \
            const T length = layout.lengths[d];                       \
            const T above = d ? rest / length : 0;                    \
            const long at = rest - above * length;                    \
            rest = above;                                             \
            for (int k = 0; k <= OPERANDS; ++k)                       \
                places[k] += at * layout.strides[k][d];               \
        }                                                             \
    }
#define LOCATE(places, number, rank)                                  \
    for (int k = 0; k <= OPERANDS; ++k) places[k] = layout.starts[k]; \
    if (layout.n >> 31)                                               \
        LOCATE_IN(ulong, places, number, rank)                        \
    else                                                              \
        LOCATE_IN(uint, places, number, rank)

#if defined(BLOCK)

#define VALUE(k) \
    (TYPE(k) == NUMBER ? numbers[k] : READ(p##k, places[k] + i * JOIN(STEP_, k), TYPE(k)))

// An item takes a part of a long row, or several short ones.
KERNEL(1) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    const int last = layout.rank - 1;
    const long inner = layout.lengths[last], outer = layout.n / inner;
    const long parts = (inner + BLOCK - 1) / BLOCK, several = inner < BLOCK ? BLOCK / inner : 1;
    const long first = ITEM % parts * BLOCK, begin = ITEM / parts * several;
    const long end = begin + several < outer ? begin + several : outer;
    const long count = inner - first < BLOCK ? inner - first : BLOCK;
    long steps[OPERANDS + 1];
    C numbers[OPERANDS];
    for (int k = 0; k <= OPERANDS; ++k) steps[k] = layout.strides[k][last];
    for (int k = 0; k < OPERANDS; ++k) numbers[k] = OF_NUMBER(layout.numbers[k]);
    for (long row = begin; row < end; ++row) {
        long places[OPERANDS + 1];
        LOCATE(places, row, last)
        for (int k = 0; k <= OPERANDS; ++k) places[k] += first * steps[k];
        for (long i = 0; i < count; ++i)
            WRITE(out, places[OPERANDS] + i * JOIN(STEP_, OPERANDS), TYPE(OPERANDS),
                  applied(OP, VALUES));
    }
}

#elif defined(FOURS)

// Four neighbours at a time; a row is a multiple of four, or there is one row.
#define VALUE(k) \
    (TYPE(k) == NUMBER ? OF_NUMBER(layout.numbers[k]) \
                       : READ(p##k, places[k] + i * JOIN(STEP_, k), TYPE(k)))
#define FOUR(k)                                                                            \
    (TYPE(k) == NUMBER ? (QUAD)(OF_NUMBER(layout.numbers[k]))                              \
     : JOIN(STEP_, k) == 1 ? READ_QUAD(p##k, places[k], TYPE(k))                           \
     : JOIN(STEP_, k) == 0 ? (QUAD)(READ(p##k, places[k], TYPE(k)))                        \
     : (QUAD)(READ(p##k, places[k], TYPE(k)),                                              \
              READ(p##k, places[k] + JOIN(STEP_, k), TYPE(k)),                             \
              READ(p##k, places[k] + 2 * JOIN(STEP_, k), TYPE(k)),                         \
              READ(p##k, places[k] + 3 * JOIN(STEP_, k), TYPE(k))))

KERNEL(GROUP_SIZE) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    const long first = 4 * ITEM;
    if (first >= layout.n) return;
    long steps[OPERANDS + 1], places[OPERANDS + 1];
    for (int k = 0; k <= OPERANDS; ++k) steps[k] = layout.strides[k][RANK - 1];
    LOCATE(places, first, RANK)
    if (first + 4 <= layout.n) {
        FOURS
        const QUAD result = (QUAD)(PART(x), PART(y), PART(z), PART(w));
        WRITE_QUAD(out, places[OPERANDS], TYPE(OPERANDS), result);
        return;
    }
    for (long i = 0; i < layout.n - first; ++i)
        WRITE(out, places[OPERANDS] + i, TYPE(OPERANDS), applied(OP, VALUES));
}

#elif defined(TURNED)

// A tile is 32 places along each of the last two axes. What lies along the one before the last is
// read along it, and found in local memory along the other.
#define ALONG(k, d) layout.strides[k][RANK - 2 + (d)]
#define VALUE(k) \
    (TYPE(k) == NUMBER ? OF_NUMBER(layout.numbers[k]) \
                       : READ(p##k, places[k] + (y + j) * ALONG(k, 0) + x * ALONG(k, 1), TYPE(k)))
#define BRING(k) \
    tile##k[y + j][x] = \
        READ(p##k, places[k] + x * ALONG(k, 0) + (y + j) * ALONG(k, 1), TYPE(k));

KERNEL(GROUP_SIZE) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    TURNED
    const long height = layout.lengths[RANK - 2], width = layout.lengths[RANK - 1];
    const long down = (height + 31) / 32, across = (width + 31) / 32;
    const long above = GROUP / across, row = above % down * 32, column = GROUP % across * 32;
    const int x = LANE % 32, y = LANE / 32;
    long places[OPERANDS + 1];
    LOCATE(places, above / down, RANK - 2)
    for (int k = 0; k <= OPERANDS; ++k) places[k] += row * ALONG(k, 0) + column * ALONG(k, 1);
    UNROLL for (int j = 0; j < 32; j += GROUP_SIZE / 32)
        if (row + x < height && column + y + j < width) {
            BRINGS
        }
    BARRIER;
    UNROLL for (int j = 0; j < 32; j += GROUP_SIZE / 32)
        if (row + y + j < height && column + x < width)
            WRITE(out, places[OPERANDS] + (y + j) * ALONG(OPERANDS, 0) + x, TYPE(OPERANDS),
                  applied(OP, VALUES));
}

#else

// An item of the form for large tensors has several places, far enough apart that neighbours have
// neighbours.
#ifdef RANK
#define PLACES 4
#else
#define PLACES 1
#define RANK layout.rank
#endif
#define VALUE(k) (TYPE(k) == NUMBER ? OF_NUMBER(layout.numbers[k]) : READ(p##k, places[k], TYPE(k)))

KERNEL(GROUP_SIZE) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    UNROLL for (int j = 0; j < PLACES; ++j) {
        const long i = (GROUP * PLACES + j) * GROUP_SIZE + LANE;
        if (i >= layout.n) return;
        long places[OPERANDS + 1];
        LOCATE(places, i, RANK)
        WRITE(out, places[OPERANDS], TYPE(OPERANDS), applied(OP, VALUES));
    }
}

#endif
