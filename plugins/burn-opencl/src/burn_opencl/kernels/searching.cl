// Binary search in a sorted vector, and indices of true elements.

#ifdef HAS_search_sorted
// Indices before which the elements of x keep the vector sorted; NaN is the largest.
typedef struct {
    long total, n, sorted_offset, offset, type, right, target;
} Parameters;

#if IS_FLOATING
#define BEFORE(x, y) ((x) < (y) || ((y) != (y) && (x) == (x)))
#else
#define BEFORE(x, y) ((x) < (y))
#endif

KERNEL(64)
void search_sorted(
    const Parameters parameters, GLOBAL const void* sorted, GLOBAL const void* x,
    GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.total) return;
    const int type = (int)parameters.type;
    const C own = READ(x, parameters.offset + item, type);
    long low = 0, high = parameters.n;
    while (low < high) {
        const long middle = (low + high) / 2;
        const C found = READ(sorted, parameters.sorted_offset + middle, type);
        if (parameters.right ? !BEFORE(own, found) : BEFORE(found, own))
            low = middle + 1;
        else
            high = middle;
    }
    write_ulong(out, item, (int)parameters.target, (ulong)low);
}
#endif

#ifdef HAS_nonzero_indices
// A row of indices for each true element of a mask; `counts` is the cumulative sum of the mask.
typedef struct {
    long total, rank, offset, target, lengths[8];
} Parameters;

KERNEL(64)
void nonzero_indices(
    const Parameters parameters, GLOBAL const uchar* mask, GLOBAL const long* counts,
    GLOBAL void* out) {
    const long item = ITEM, rank = parameters.rank;
    if (item >= parameters.total || !mask[parameters.offset + item]) return;
    const long row = counts[item] - 1;
    long rest = item;
    for (long axis = rank - 1; axis >= 0; --axis) {
        const long quotient = rest / parameters.lengths[axis];
        const ulong index = (ulong)(rest - quotient * parameters.lengths[axis]);
        write_ulong(out, row * rank + axis, (int)parameters.target, index);
        rest = quotient;
    }
}
#endif
