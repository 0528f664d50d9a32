// Scans along the middle axis of (outer, n, inner), in parts where that is long: first the totals of the
// parts, then the scan of the totals, then that of the elements. An item scans a part, or a group of a GPU
// where inner is 1.

typedef struct {
    int64 outer, n, inner, offset, parts, chunk, op, type;
} Parameters;
#ifndef OP
#define OP ((int)parameters.op)
#define TYPE ((int)parameters.type)
#endif

#ifdef HAS_scan
#define BEGIN                                                                            \
    const int64 inner = parameters.inner, item = ITEM, above = item / inner;             \
    const int64 column = item - above * inner, n = parameters.n;                         \
    int64 row = above, part = 0;                                                         \
    if (parameters.parts > 1) {                                                          \
        row = above / parameters.parts;                                                  \
        part = above - row * parameters.parts;                                           \
    }                                                                                    \
    if (row >= parameters.outer) return;                                                 \
    const int64 first = part * parameters.chunk;                                         \
    const int64 stop = first + parameters.chunk < n ? first + parameters.chunk : n;      \
    const int64 base = row * n * inner + column, x_base = parameters.offset + base;

KERNEL(GROUP_ITEMS)
void reduce_parts(const Parameters parameters, GLOBAL const void* restrict x, GLOBAL C* restrict totals) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    for (int64 k = first + 1; k < stop; ++k)
        own = combined(OP, own, READ(x, x_base + k * inner, TYPE));
    totals[item] = own;
}
KERNEL(GROUP_ITEMS) void scan_totals(const Parameters parameters, GLOBAL C* totals) {
    const int64 inner = parameters.inner, item = ITEM;
    const int64 column = item % inner, row = item / inner, parts = parameters.parts;
    if (row >= parameters.outer) return;
    C own = totals[row * parts * inner + column];
    for (int64 part = 1; part < parts; ++part) {
        const int64 index = (row * parts + part) * inner + column;
        own = combined(OP, own, totals[index]);
        totals[index] = own;
    }
}
KERNEL(GROUP_ITEMS) void scan(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const C* restrict totals,
    GLOBAL void* restrict out) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    if (part > 0) own = combined(OP, totals[item - inner], own);
    WRITE(out, base + first * inner, TYPE, own);
    for (int64 k = first + 1; k < stop; ++k) {
        own = combined(OP, own, READ(x, x_base + k * inner, TYPE));
        WRITE(out, base + k * inner, TYPE, own);
    }
}
#endif

#ifdef HAS_scan_rows
#define LANES 256
#define ELEMENTS_PER_ITEM 8

// The totals of parts.
KERNEL(LANES) void reduce_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL C* restrict totals) {
    LOCAL C sums[LANES];
    const int lane = LANE;
    PART_OF_ROW(GROUP)
    const int64 x_base = parameters.offset + row * n;
    const int active = stop - first < LANES ? (int)(stop - first) : LANES;
    C own = (C)0;
    if (lane < active) own = READ(x, x_base + first + lane, TYPE);
    UNROLLED(4) for (int64 k = first + lane + LANES; k < stop; k += LANES)
        own = combined(OP, own, READ(x, x_base + k, TYPE));
    sums[lane] = own;
    for (int step = LANES / 2; step > 0; step /= 2) {
        BARRIER;
        if (lane < step && lane + step < active)
            sums[lane] = combined(OP, sums[lane], sums[lane + step]);
    }
    if (lane == 0) totals[GROUP] = sums[0];
}

KERNEL(LANES) void scan_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const C* restrict totals,
    GLOBAL void* restrict out) {
    LOCAL C sums[LANES];
    const int lane = LANE;
    PART_OF_ROW(GROUP)
    const int64 base = row * n, x_base = parameters.offset + base;
    int has_before = part > 0;
    C before = has_before ? totals[GROUP - 1] : (C)0;
    for (int64 tile = first; tile < stop; tile += LANES * ELEMENTS_PER_ITEM) {
        // Each item scans consecutive elements.
        const int64 left_in_part = stop - tile;
        const int count = left_in_part < LANES * ELEMENTS_PER_ITEM ? (int)left_in_part
                                                                   : LANES * ELEMENTS_PER_ITEM;
        const int left = count - lane * ELEMENTS_PER_ITEM;
        const int64 start = tile + lane * ELEMENTS_PER_ITEM;
        C own[ELEMENTS_PER_ITEM];
#if BY_FOUR
        if (left >= ELEMENTS_PER_ITEM) {
            UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; k += 4)
                READ_FOUR(x, x_base + start + k, TYPE, own + k);
        } else
#endif
        UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; ++k)
            own[k] = k < left ? READ(x, x_base + start + k, TYPE) : (C)0;
        C all = own[0];
        UNROLL for (int k = 1; k < ELEMENTS_PER_ITEM; ++k) {
            own[k] = combined(OP, own[k - 1], own[k]);
            if (k < left) all = own[k];
        }
        // The scan of the totals of the items.
        sums[lane] = all;
        for (int step = 1; step < LANES; step *= 2) {
            BARRIER;
            const C earlier = lane >= step ? sums[lane - step] : (C)0;
            BARRIER;
            if (lane >= step) sums[lane] = combined(OP, earlier, sums[lane]);
        }
        BARRIER;
        if (lane > 0 || has_before) {
            C earlier = lane > 0 ? sums[lane - 1] : before;
            if (lane > 0 && has_before) earlier = combined(OP, before, earlier);
            UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; ++k) own[k] = combined(OP, earlier, own[k]);
        }
#if BY_FOUR
        if (left >= ELEMENTS_PER_ITEM) {
            UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; k += 4)
                WRITE_FOUR(out, base + start + k, TYPE, own + k);
        } else
#endif
        UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; ++k)
            if (k < left) WRITE(out, base + start + k, TYPE, own[k]);
        all = sums[(count - 1) / ELEMENTS_PER_ITEM];
        before = has_before ? combined(OP, before, all) : all;
        has_before = 1;
        BARRIER;
    }
}
#endif
