// Places: of elements in a sorted vector, and of elements that are true.

#ifdef HAS_search_sorted
// Before which the elements of x keep the vector sorted; NaN is the largest.
typedef struct {
    long total, n, sorted_start, start, type, right, target;
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
    const C own = READ(x, parameters.start + item, type);
    long low = 0, high = parameters.n;
    while (low < high) {
        const long middle = (low + high) / 2;
        const C found = READ(sorted, parameters.sorted_start + middle, type);
        if (parameters.right ? !BEFORE(own, found) : BEFORE(found, own))
            low = middle + 1;
        else
            high = middle;
    }
    write_ulong(out, item, (int)parameters.target, (ulong)low);
}
#endif

#ifdef HAS_places_where
// A row of indices for each element of a mask that is true: its number among them is known.
typedef struct {
    long total, rank, start, target, lengths[8];
} Parameters;

KERNEL(64)
void places_where(
    const Parameters parameters, GLOBAL const uchar* mask, GLOBAL const long* numbers,
    GLOBAL void* out) {
    const long item = ITEM, rank = parameters.rank;
    if (item >= parameters.total || !mask[parameters.start + item]) return;
    const long row = numbers[item] - 1;
    long rest = item;
    for (long axis = rank - 1; axis >= 0; --axis) {
        const long above = rest / parameters.lengths[axis];
        const ulong place = (ulong)(rest - above * parameters.lengths[axis]);
        write_ulong(out, row * rank + axis, (int)parameters.target, place);
        rest = above;
    }
}
#endif
