// Binary search in a sorted vector, and indices of true elements.

#ifdef HAS_search_sorted
// Indices before which the elements of x keep the vector sorted; NaN is the largest.
typedef struct {
    int64 total, n, sorted_offset, offset, right, type, target;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define TARGET ((int)parameters.target)
#endif

#if IS_FLOATING
#define BEFORE(x, y) ((x) < (y) || ((y) != (y) && (x) == (x)))
#else
#define BEFORE(x, y) ((x) < (y))
#endif

KERNEL(GROUP_ITEMS) void search_sorted(
    const Parameters parameters, GLOBAL const void* restrict sorted, GLOBAL const void* restrict x,
    GLOBAL void* restrict out) {
    const int64 item = ITEM;
    if (item >= parameters.total) return;
    const C own = READ(x, parameters.offset + item, TYPE);
    int64 low = 0, high = parameters.n;
    while (low < high) {
        const int64 middle = (low + high) / 2;
        const C found = READ(sorted, parameters.sorted_offset + middle, TYPE);
        if (parameters.right ? !BEFORE(own, found) : BEFORE(found, own))
            low = middle + 1;
        else
            high = middle;
    }
    write_ulong(out, item, TARGET, (uint64)low);
}
#endif

#ifdef HAS_nonzero_indices
// A row of indices for each true element of a mask; `counts` is the cumulative sum of the mask.
typedef struct {
    int64 total, rank, offset, target, lengths[8];
} Parameters;

KERNEL(GROUP_ITEMS) void nonzero_indices(
    const Parameters parameters, GLOBAL const uchar* restrict mask,
    GLOBAL const int64* restrict counts, GLOBAL void* restrict out) {
    const int64 item = ITEM, rank = parameters.rank;
    if (item >= parameters.total || !mask[parameters.offset + item]) return;
    const int64 row = counts[item] - 1;
    int64 rest = item;
    for (int64 axis = rank - 1; axis >= 0; --axis) {
        const int64 above = rest / parameters.lengths[axis];
        const uint64 index = (uint64)(rest - above * parameters.lengths[axis]);
        write_ulong(out, row * rank + axis, (int)parameters.target, index);
        rest = above;
    }
}
#endif
