// start + i * step.

typedef struct {
    long n, start, step, type;
} Parameters;

KERNEL(64) void arange(const Parameters parameters, GLOBAL void* out) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const C start = SCALAR((ulong)parameters.start), step = SCALAR((ulong)parameters.step);
    WRITE(out, i, (int)parameters.type, start + (C)i * step);
}
