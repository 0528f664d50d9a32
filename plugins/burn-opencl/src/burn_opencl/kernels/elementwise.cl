// One operation at each place of operands that broadcast. There are four forms: the general one,
// that for large tensors (OP and the types are constants), and among those one that goes along
// rows for a CPU (BLOCK) and one that reads four elements at once for a GPU (QUADS).

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
#define LOCATE(places, number, rank)                                              \
    for (int k = 0; k <= OPERANDS; ++k) places[k] = layout.starts[k];             \
    if (layout.n >> 31) {                                                         \
        ulong rest = number;                                                      \
        for (int d = (rank) - 1; d >= 0; --d) {                                   \
            const ulong length = layout.lengths[d], above = rest / length;        \
            const long at = rest - above * length;                                \
            rest = above;                                                         \
            for (int k = 0; k <= OPERANDS; ++k)                                   \
                places[k] += at * layout.strides[k][d];                           \
        }                                                                         \
    } else {                                                                      \
        uint rest = number;                                                       \
        for (int d = (rank) - 1; d >= 0; --d) {                                   \
            const uint length = layout.lengths[d], above = rest / length;         \
            const long at = rest - above * length;                                \
            rest = above;                                                         \
            for (int k = 0; k <= OPERANDS; ++k)                                   \
                places[k] += at * layout.strides[k][d];                           \
        }                                                                         \
    }

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

#elif defined(QUADS)

#define VALUE(k) \
    (TYPE(k) == NUMBER ? OF_NUMBER(layout.numbers[k]) \
                       : READ(p##k, layout.starts[k] + i, TYPE(k)))
#define QUAD(k)                                                      \
    (TYPE(k) == NUMBER ? (float4)(number_float(layout.numbers[k]))   \
                       : *AS(const float4, AS(const float, p##k) + layout.starts[k] + first))

KERNEL(GROUP_SIZE) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    const long first = 4 * ITEM;
    if (first + 4 <= layout.n) {
        QUADS
        const float4 result = (float4)(PART(x), PART(y), PART(z), PART(w));
        *AS(float4, AS(float, out) + layout.starts[OPERANDS] + first) = result;
        return;
    }
    for (long i = first; i < layout.n; ++i)
        WRITE(out, layout.starts[OPERANDS] + i, TYPE(OPERANDS), applied(OP, VALUES));
}

#else

#ifdef DENSE
#define PLACE(k) (layout.starts[k] + i)
#else
#define PLACE(k) places[k]
#endif
#define VALUE(k) (TYPE(k) == NUMBER ? OF_NUMBER(layout.numbers[k]) : READ(p##k, PLACE(k), TYPE(k)))

KERNEL(GROUP_SIZE) void elementwise(const Layout layout, MEMORIES, GLOBAL void* restrict out) {
    const long i = ITEM;
    if (i >= layout.n) return;
#ifndef DENSE
    long places[OPERANDS + 1];
    LOCATE(places, i, layout.rank)
#endif
    WRITE(out, PLACE(OPERANDS), TYPE(OPERANDS), applied(OP, VALUES));
}

#endif
