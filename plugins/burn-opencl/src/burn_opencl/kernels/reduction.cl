// Elements lie as (outer, n, inner), and the middle axis is reduced, in parts where it is long.

typedef struct {
    long outer, n, inner, start, parts, chunk, op, source, target;
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
inline C seen(int op, C x) { return op >= ANY ? (C)(x != (C)0) : x; }
#define VALUE(place) seen(OP, READ(x, place, SOURCE))
#define LANES 32
#define COLUMNS 2048

#ifdef HAS_reduce
// An item for each result and part; along rows on a CPU several elements go side by side.
KERNEL(64) void reduce(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
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
    for (; k < stop; ++k) own = joined(OP, own, VALUE(base + k * inner));
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

// A group for each row and part of it, on a GPU: neighbours read neighbours.
#ifdef HAS_reduce_rows
KERNEL(256) void reduce_rows(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    LOCAL C shared[256];
    const int lane = LANE;
    const long part = GROUP % parameters.parts, row = GROUP / parameters.parts;
    const long first = part * parameters.chunk, n = parameters.n;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    const long base = parameters.start + row * n;
    const int begun = stop - first < 256 ? (int)(stop - first) : 256;
    C own = (C)0;
    if (lane < begun) {
        own = VALUE(base + first + lane);
        for (long k = first + lane + 256; k < stop; k += 256)
            own = joined(OP, own, VALUE(base + k));
    }
    shared[lane] = own;
    for (int step = 128; step > 0; step /= 2) {
        BARRIER;
        if (lane < step && lane + step < begun)
            shared[lane] = joined(OP, shared[lane], shared[lane + step]);
    }
    if (lane == 0) WRITE(out, GROUP, TARGET, shared[0]);
}
#endif
