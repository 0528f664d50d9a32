// Scans along the middle axis of (outer, n, inner), in parts where that is long: first the totals of the
// parts, then the scan of the totals, then that of the elements. An item scans a part, or a group of a GPU
// where inner is 1.

typedef struct {
    long outer, n, inner, offset, parts, chunk, op, type;
} Parameters;
#ifndef OP
#define OP ((int)parameters.op)
#define TYPE ((int)parameters.type)
#endif

#ifdef HAS_scan
#define BEGIN                                                                \
    const long inner = parameters.inner, item = ITEM, column = item % inner; \
    PART_OF_ROW(item / inner)                                                \
    if (row >= parameters.outer) return;                                     \
    const long base = row * n * inner + column, x_base = parameters.offset + base;

KERNEL(64)
void reduce_parts(const Parameters parameters, GLOBAL const void* x, GLOBAL C* totals) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    for (long k = first + 1; k < stop; ++k)
        own = combined(OP, own, READ(x, x_base + k * inner, TYPE));
    totals[item] = own;
}
KERNEL(64) void scan_totals(const Parameters parameters, GLOBAL C* totals) {
    const long inner = parameters.inner, item = ITEM;
    const long column = item % inner, row = item / inner, parts = parameters.parts;
    if (row >= parameters.outer) return;
    C own = totals[row * parts * inner + column];
    for (long part = 1; part < parts; ++part) {
        const long index = (row * parts + part) * inner + column;
        own = combined(OP, own, totals[index]);
        totals[index] = own;
    }
}
KERNEL(64) void scan(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const C* totals,
    GLOBAL void* out) {
    BEGIN
    C own = READ(x, x_base + first * inner, TYPE);
    if (part > 0) own = combined(OP, totals[item - inner], own);
    WRITE(out, base + first * inner, TYPE, own);
    for (long k = first + 1; k < stop; ++k) {
        own = combined(OP, own, READ(x, x_base + k * inner, TYPE));
        WRITE(out, base + k * inner, TYPE, own);
    }
}
#endif

#ifdef HAS_scan_rows
#define ELEMENTS_PER_ITEM 8
KERNEL(256) void scan_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const C* restrict totals,
    GLOBAL void* restrict out) {
    LOCAL C sums[256];
    const int lane = LANE;
    PART_OF_ROW(GROUP)
    const long base = row * n, x_base = parameters.offset + base;
    int has_before = part > 0;
    C before = has_before ? totals[GROUP - 1] : (C)0;
    for (long tile = first; tile < stop; tile += 256 * ELEMENTS_PER_ITEM) {
        // Each item scans consecutive elements.
        const long left_in_part = stop - tile;
        const int count = left_in_part < 256 * ELEMENTS_PER_ITEM ? (int)left_in_part
                                                                 : 256 * ELEMENTS_PER_ITEM;
        const int left = count - lane * ELEMENTS_PER_ITEM;
        const long start = tile + lane * ELEMENTS_PER_ITEM;
        C own[ELEMENTS_PER_ITEM];
#if BY_VEC4
        if (left >= ELEMENTS_PER_ITEM) {
            UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; k += 4)
                STORE_VEC4(READ_VEC4(x, x_base + start + k, TYPE), own + k);
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
        for (int step = 1; step < 256; step *= 2) {
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
#if BY_VEC4
        if (left >= ELEMENTS_PER_ITEM) {
            UNROLL for (int k = 0; k < ELEMENTS_PER_ITEM; k += 4)
                WRITE_VEC4(out, base + start + k, TYPE, LOAD_VEC4(own + k));
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
