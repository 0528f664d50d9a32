// Reading and writing at places that indices name. Elements lie as (outer, length, inner), and are
// moved as words of their size. Indices lie as (outer, count, inner), or are one for all rows.

typedef struct {
    long n, outer, length, count, inner, start, index_start, value_start, selects, type, index_type,
        update, call;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define INDEX_TYPE ((int)parameters.index_type)
#define UPDATE ((int)parameters.update)
#endif
#define ASSIGN 0
#define ADD 1
#define MULTIPLY 2
#define MIN 3
#define MAX 4

#define INDEX(place) \
    index_in(read_ulong(indices, parameters.index_start + (place), INDEX_TYPE), INDEX_TYPE, \
             parameters.length, note, parameters.call)

#ifdef HAS_gather
KERNEL(64) void gather(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* indices,
    GLOBAL void* out, GLOBAL long* note) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const long column = i % parameters.inner, above = i / parameters.inner;
    const long at = above % parameters.count, row = above / parameters.count;
    const long index = INDEX(parameters.selects ? at : i);
    if (index < 0) return;
    const long place = (row * parameters.length + index) * parameters.inner + column;
    WRITE(out, i, TYPE, READ(x, parameters.start + place, TYPE));
}
#endif

// An item for each column: the updates of one place take effect one after the other, in order.
#ifdef HAS_scatter
KERNEL(64) void scatter(
    const Parameters parameters, GLOBAL void* out, GLOBAL const void* indices,
    GLOBAL const void* values, GLOBAL long* note) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const long column = i % parameters.inner, row = i / parameters.inner;
    for (long k = 0; k < parameters.count; ++k) {
        const long at = (row * parameters.count + k) * parameters.inner + column;
        const long index = INDEX(parameters.selects ? k : at);
        if (index < 0) continue;
        const long place = (row * parameters.length + index) * parameters.inner + column;
        const C value = READ(values, parameters.value_start + at, TYPE);
        const C own = READ(out, place, TYPE);
        switch (UPDATE) {
            case ASSIGN: WRITE(out, place, TYPE, value); break;
            case ADD: WRITE(out, place, TYPE, own + value); break;
            case MULTIPLY: WRITE(out, place, TYPE, own * value); break;
            case MIN: WRITE(out, place, TYPE, smaller(own, value)); break;
            case MAX: WRITE(out, place, TYPE, larger(own, value)); break;
        }
    }
}
#endif
