// Weighted sums of some elements along the middle axis of (outer, n, inner). A table says for each
// output which ones, -1 for none, and by how much they are multiplied.

typedef struct {
    long total, n, inner, outputs, count, start, source, target;
} Parameters;

#if IS_DOUBLE
#define WIDE FLOAT64
#else
#define WIDE FLOAT32
#endif

KERNEL(64)
void weighted_sums(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const int* places,
    GLOBAL const C* weights, GLOBAL void* out) {
    const long item = ITEM, inner = parameters.inner, count = parameters.count;
    if (item >= parameters.total) return;
    const long above = item / inner, column = item - above * inner;
    const long row = above / parameters.outputs, output = above - row * parameters.outputs;
    const long base = parameters.start + row * parameters.n * inner + column;
    C sum = (C)0;
    for (long k = output * count; k < (output + 1) * count; ++k) {
        const int place = places[k];
        if (place < 0) continue;
        sum += weights[k] * READ(x, base + place * inner, (int)parameters.source);
    }
    WRITE(out, item, (int)parameters.target, sum);
}
