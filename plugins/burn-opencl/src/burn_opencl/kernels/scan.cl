// What accumulates along the middle axis of (outer, n, inner), in parts where that is long: first
// what each part comes to, then what all before each do, then the elements. An item goes along a
// part, or, on a GPU where inner is 1, a group does.

typedef struct {
    long outer, n, inner, start, parts, chunk, op, type;
} Parameters;
#ifndef OP
#define OP ((int)parameters.op)
#define TYPE ((int)parameters.type)
#endif

inline C joined(int op, C x, C y) {
    switch (op) {
        case 0: return x + y;
        case 1: return x * y;
        case 2: return larger(x, y);
        default: return smaller(x, y);
    }
}

#ifdef HAS_scan
#define BEGIN                                                                        \
    const long n = parameters.n, inner = parameters.inner, item = ITEM;              \
    const long column = item % inner, above = item / inner;                          \
    const long part = above % parameters.parts, row = above / parameters.parts;      \
    if (row >= parameters.outer) return;                                             \
    const long first = part * parameters.chunk;                                      \
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;   \
    const long base = row * n * inner + column, x_base = parameters.start + base;

KERNEL(64)
void part_totals(const Parameters parameters, GLOBAL const void* x, GLOBAL C* totals) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    for (long k = first + 1; k < stop; ++k)
        own = joined(OP, own, READ(x, x_base + k * inner, TYPE));
    totals[item] = own;
}
KERNEL(64) void totals_before(const Parameters parameters, GLOBAL C* totals) {
    const long inner = parameters.inner, item = ITEM;
    const long column = item % inner, row = item / inner, parts = parameters.parts;
    if (row >= parameters.outer) return;
    C own = totals[row * parts * inner + column];
    for (long part = 1; part < parts; ++part) {
        const long place = (row * parts + part) * inner + column;
        own = joined(OP, own, totals[place]);
        totals[place] = own;
    }
}
KERNEL(64) void scan(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const C* totals,
    GLOBAL void* out) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    if (part > 0) own = joined(OP, totals[item - inner], own);
    WRITE(out, base + first * inner, TYPE, own);
    for (long k = first + 1; k < stop; ++k) {
        own = joined(OP, own, READ(x, x_base + k * inner, TYPE));
        WRITE(out, base + k * inner, TYPE, own);
    }
}
#endif

#ifdef HAS_scan_rows
#define PER 8
KERNEL(256) void scan_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const C* restrict totals,
    GLOBAL void* restrict out) {
    LOCAL C sums[256];
    const int lane = LANE;
    const long part = GROUP % parameters.parts, row = GROUP / parameters.parts, n = parameters.n;
    const long first = part * parameters.chunk, base = row * n, x_base = parameters.start + base;
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;
    int begun = part > 0;
    C before = begun ? totals[GROUP - 1] : (C)0;
    for (long tile = first; tile < stop; tile += 256 * PER) {
        // Each item joins elements that follow each other.
        const int count = stop - tile < 256 * PER ? (int)(stop - tile) : 256 * PER;
        const int left = count - lane * PER;
        const long at = tile + lane * PER;
        C own[PER];
#if BY_QUADS
        if (left >= PER) {
            UNROLL for (int q = 0; q < PER; q += 4)
                PUT_QUAD(READ_QUAD(x, x_base + at + q, TYPE), own + q);
        } else
#endif
        UNROLL for (int k = 0; k < PER; ++k)
            own[k] = k < left ? READ(x, x_base + at + k, TYPE) : (C)0;
        C all = own[0];
        UNROLL for (int k = 1; k < PER; ++k) {
            own[k] = joined(OP, own[k - 1], own[k]);
            if (k < left) all = own[k];
        }
        // What the items up to each come to.
        sums[lane] = all;
        for (int step = 1; step < 256; step *= 2) {
            BARRIER;
            const C earlier = lane >= step ? sums[lane - step] : (C)0;
            BARRIER;
            if (lane >= step) sums[lane] = joined(OP, earlier, sums[lane]);
        }
        BARRIER;
        if (lane > 0 || begun) {
            C earlier = lane > 0 ? sums[lane - 1] : before;
            if (lane > 0 && begun) earlier = joined(OP, before, earlier);
            UNROLL for (int k = 0; k < PER; ++k) own[k] = joined(OP, earlier, own[k]);
        }
#if BY_QUADS
        if (left >= PER) {
            UNROLL for (int q = 0; q < PER; q += 4)
                WRITE_QUAD(out, base + at + q, TYPE, GET_QUAD(own + q));
        } else
#endif
        UNROLL for (int k = 0; k < PER; ++k)
            if (k < left) WRITE(out, base + at + k, TYPE, own[k]);
        all = sums[(count - 1) / PER];
        before = begun ? joined(OP, before, all) : all;
        begun = 1;
        BARRIER;
    }
}
#endif
