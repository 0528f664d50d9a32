// Elements lie as (outer, n, inner), and the middle axis is reduced, in parts where it is long.

typedef struct {
    long outer, n, inner, start, parts, chunk, op, source, target, numbers[4];
} Parameters;
#ifndef OP
#define OP ((int)parameters.op)
#define SOURCE ((int)parameters.source)
#define TARGET ((int)parameters.target)
#endif
#define SUM 0
#define PRODUCT 1
#define LARGEST 2
#define SMALLEST 3
#define ANY 4
#define ALL 5

inline C joined(int op, C x, C y) {
    switch (op) {
        case SUM: return x + y;
        case PRODUCT: return x * y;
        case LARGEST: case ANY: return larger(x, y);
        default: return smaller(x, y);
    }
}
// PRODUCED makes an element of what is read, where that is not computed yet.
#ifndef PRODUCED
#define PRODUCED(v) v
#endif
inline C as_seen(int op, C x) { return op >= ANY ? (C)(x != (C)0) : x; }
#define SEEN(v) as_seen(OP, PRODUCED(v))
#define VALUE(place) SEEN(READ(x, place, SOURCE))
#define LANES 32
#define COLUMNS 2048

#ifdef HAS_reduce
// An item for each result and part; along rows on a CPU several elements go side by side.
KERNEL(GROUP_SIZE) void reduce(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    const long n = parameters.n, inner = parameters.inner, item = ITEM;
    const long column = item % inner, above = item / inner;
    const long part = above % parameters.parts, row = above / parameters.parts;
    if (row >= parameters.outer) return;
    const long first = part * parameters.chunk;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long base = parameters.start + row * n * inner + column;
    C own;
    long k = first;
#if ALONG
    if (stop - first >= 2 * LANES) {
        C lanes[LANES];
        for (int j = 0; j < LANES; ++j) lanes[j] = VALUE(base + first + j);
        for (k = first + LANES; k + LANES <= stop; k += LANES)
            for (int j = 0; j < LANES; ++j) lanes[j] = joined(OP, lanes[j], VALUE(base + k + j));
        own = lanes[0];
        for (int j = 1; j < LANES; ++j) own = joined(OP, own, lanes[j]);
    } else
#endif
    {
        own = VALUE(base + k * inner);
        ++k;
    }
    UNROLLED(8) for (; k < stop; ++k) own = joined(OP, own, VALUE(base + k * inner));
    WRITE(out, item, TARGET, own);
}
#endif

#ifdef HAS_reduce_columns
// For a CPU: an item goes over the rows of a part in the order of memory, COLUMNS at a time.
KERNEL(1) void reduce_columns(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL C* restrict out) {
    const long n = parameters.n, inner = parameters.inner, item = ITEM;
    const long blocks = (inner + COLUMNS - 1) / COLUMNS;
    const long column = item % blocks * COLUMNS, above = item / blocks;
    const long part = above % parameters.parts, row = above / parameters.parts;
    const long first = part * parameters.chunk;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long base = parameters.start + row * n * inner + column;
    const long wide = inner - column < COLUMNS ? inner - column : COLUMNS;
    GLOBAL C* restrict own = out + above * inner + column;
    for (long j = 0; j < wide; ++j) own[j] = VALUE(base + first * inner + j);
    for (long k = first + 1; k < stop; ++k)
        for (long j = 0; j < wide; ++j) own[j] = joined(OP, own[j], VALUE(base + k * inner + j));
}
#endif

#ifdef HAS_reduce_blocks
// For a GPU: a group goes over a block of `wide` columns in the order of memory, as many rows of a part
// at a time as it has items for.
KERNEL(256) void reduce_blocks(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    LOCAL C shared[256];
    const long n = parameters.n, inner = parameters.inner, blocks = (inner + WIDE - 1) / WIDE;
    const long block = GROUP % blocks, above = GROUP / blocks;
    const long part = above % parameters.parts, row = above / parameters.parts;
    const long first = part * parameters.chunk;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long column = block * WIDE + LANE % WIDE, base = parameters.start + row * n * inner + column;
    const int height = 256 / WIDE, down = LANE / WIDE;
    const int begun = stop - first < height ? (int)(stop - first) : height;
    C own = (C)0;
    if (down < begun && column < inner) {
        long k = first + down;
        own = VALUE(base + k * inner);
        UNROLLED(8) for (k += height; k < stop; k += height)
            own = joined(OP, own, VALUE(base + k * inner));
    }
    shared[LANE] = own;
    for (int left = begun; left > 1; left = (left + 1) / 2) {
        const int half_way = (left + 1) / 2;
        BARRIER;
        if (down < left / 2) shared[LANE] = joined(OP, shared[LANE], shared[LANE + half_way * WIDE]);
    }
    if (down == 0 && column < inner) WRITE(out, above * inner + column, TARGET, shared[LANE]);
}
#endif

// ROW_LANES items of a group for each row and part of it, on a GPU: neighbours read neighbours, in
// quads where a row and its parts are made of those (BY_QUADS), and several at a time.
#ifdef HAS_reduce_rows
#if BY_QUADS
#define SPAN 4
#define PIECE QUAD
#define PIECE_AT(place) READ_QUAD(x, place, SOURCE)
#define FOLDED(p) joined(OP, joined(OP, SEEN(p.x), SEEN(p.y)), joined(OP, SEEN(p.z), SEEN(p.w)))
#else
#define SPAN 1
#define PIECE C
#define PIECE_AT(place) READ(x, place, SOURCE)
#define FOLDED(p) SEEN(p)
#endif
#define AT_ONCE 4
#define STRIDE (ROW_LANES * SPAN)
KERNEL(256) void reduce_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    LOCAL C shared[256];
    const int lane = LANE % ROW_LANES;
    const long result = GROUP * (256 / ROW_LANES) + LANE / ROW_LANES;
    const long part = result % parameters.parts, row = result / parameters.parts;
    const long first = part * parameters.chunk, n = parameters.n;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long base = parameters.start + row * n;
    const long pieces = row < parameters.outer ? (stop - first) / SPAN : 0;
    const int begun = pieces < ROW_LANES ? (int)pieces : ROW_LANES;
    C own = (C)0;
    if (lane < begun) {
        long k = first + lane * SPAN;
        PIECE piece = PIECE_AT(base + k);
        own = FOLDED(piece);
        k += STRIDE;
        for (; k + (AT_ONCE - 1) * STRIDE < stop; k += AT_ONCE * STRIDE) {
            PIECE several[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; ++j) several[j] = PIECE_AT(base + k + j * STRIDE);
            UNROLL for (int j = 0; j < AT_ONCE; ++j)
                own = joined(OP, own, FOLDED(several[j]));
        }
        for (; k < stop; k += STRIDE) {
            piece = PIECE_AT(base + k);
            own = joined(OP, own, FOLDED(piece));
        }
    }
    shared[LANE] = own;
    UNROLL for (int step = ROW_LANES / 2; step > 0; step /= 2) {
        BARRIER;
        if (lane < step && lane + step < begun)
            shared[LANE] = joined(OP, shared[LANE], shared[LANE + step]);
    }
    if (lane == 0 && begun) WRITE(out, result, TARGET, shared[LANE]);
}
#endif
