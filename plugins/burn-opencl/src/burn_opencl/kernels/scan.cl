// What accumulates along the middle axis of (outer, n, inner), in parts where that is long: first
// what each part comes to, then what all before each do, then the elements.

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
