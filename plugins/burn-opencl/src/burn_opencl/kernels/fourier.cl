// One step of a Fourier transform of rows of n elements (T. G. Stockham, 1966; here for any factors): from
// the transforms of l elements element a stride of m * p, those of l * p elements element a stride of m:
// out[q, k] = sum over b < p of w**(b k) * x[q + m b, k mod l], where w is the root of order l p.

typedef struct {
    long rows, n, p, l, m, kept, length, sign, offset_re, offset_im, source, target, mirrored, scale;
} Parameters;

// The first step reads the signal, padded with zeros, or the first half of a spectrum, from which it
// mirrors the second half. The last step writes the `kept` first elements.
#if IS_FIRST
#define RE(k) READ(re, parameters.offset_re + row * parameters.length + (k), (int)parameters.source)
#if IS_REAL
#define IM(k) ((C)0)
#else
#define IM(k) READ(im, parameters.offset_im + row * parameters.length + (k), (int)parameters.source)
#endif
#define LOAD(k)                                                                              \
    const int is_mirrored = parameters.mirrored && 2 * (k) > n;                              \
    const long source_index = is_mirrored ? n - (k) : (k);                                   \
    const int is_present = source_index < parameters.length;                                 \
    const int is_real = parameters.mirrored && (source_index == 0 || 2 * source_index == n); \
    const C x_re = is_present ? RE(source_index) : (C)0;                                     \
    const C y_im = is_present && !is_real ? IM(source_index) : (C)0;                         \
    const C x_im = is_mirrored ? -y_im : y_im;
#else
#define LOAD(k)                                    \
    const C x_re = AS(const C, re)[row * n + (k)]; \
    const C x_im = AS(const C, im)[row * n + (k)];
#endif

#if IS_LAST
#define STORE(index, x, y)                                                                   \
    {                                                                                        \
        const C scale = SCALAR((ulong)parameters.scale);                                     \
        WRITE(out_re, index, (int)parameters.target, (x) * scale);                           \
        if (!parameters.mirrored) WRITE(out_im, index, (int)parameters.target, (y) * scale); \
    }
#else
#define STORE(index, x, y)        \
    {                             \
        AS(C, out_re)[index] = x; \
        AS(C, out_im)[index] = y; \
    }
#endif

#ifdef P
// An item computes the P outputs that depend on the same elements.
KERNEL(64)
void transform(
    const Parameters parameters, GLOBAL const void* re, GLOBAL const void* im,
    GLOBAL const C* cosines, GLOBAL const C* sines, GLOBAL void* out_re, GLOBAL void* out_im) {
    const long n = parameters.n, kept = parameters.kept, l = parameters.l, m = parameters.m;
    const INDEX item = ITEM, groups = n / P, row = item / groups, rest = item - row * groups;
    if (row >= parameters.rows) return;
    const INDEX q = rest / (INDEX)l, k = rest - q * (INDEX)l, step = (INDEX)m * k;
    const C sign = (C)parameters.sign;
    C t_re[P], t_im[P];
    for (int b = 0; b < P; ++b) {
#if IS_FIRST
        const long element = q + m * b;
#else
        const long element = (q + m * b) * l + k;
#endif
        LOAD(element)
        const C cosine = cosines[step * b], sine = sign * sines[step * b];
        t_re[b] = x_re * cosine - x_im * sine;
        t_im[b] = x_re * sine + x_im * cosine;
    }
#if P == 4
    const long output = q * l * P + k, base = row * kept + output;
    const C a_re = t_re[0] + t_re[2], a_im = t_im[0] + t_im[2];
    const C b_re = t_re[0] - t_re[2], b_im = t_im[0] - t_im[2];
    const C c_re = t_re[1] + t_re[3], c_im = t_im[1] + t_im[3];
    const C d_re = sign * (t_re[1] - t_re[3]), d_im = sign * (t_im[1] - t_im[3]);
    if (output < kept) STORE(base, a_re + c_re, a_im + c_im)
    if (output + l < kept) STORE(base + l, b_re - d_im, b_im + d_re)
    if (output + 2 * l < kept) STORE(base + 2 * l, a_re - c_re, a_im - c_im)
    if (output + 3 * l < kept) STORE(base + 3 * l, b_re + d_im, b_im - d_re)
#else
    for (int c = 0; c < P; ++c) {
        const long output = q * l * P + k + l * c;
        C sum_re = 0, sum_im = 0;
        for (int b = 0; b < P; ++b) {
            const long angle = (long)groups * (b * c % P);
            const C cosine = cosines[angle], sine = sign * sines[angle];
            sum_re += t_re[b] * cosine - t_im[b] * sine;
            sum_im += t_re[b] * sine + t_im[b] * cosine;
        }
        if (output < kept) STORE(row * kept + output, sum_re, sum_im)
    }
#endif
}
#else
KERNEL(64)
void transform(
    const Parameters parameters, GLOBAL const void* re, GLOBAL const void* im,
    GLOBAL const C* cosines, GLOBAL const C* sines, GLOBAL void* out_re, GLOBAL void* out_im) {
    const long item = ITEM, n = parameters.n, kept = parameters.kept;
    if (item >= parameters.rows * kept) return;
    const long row = item / kept, output = item - row * kept;
    const long each = parameters.l * parameters.p, q = output / each, k = output - q * each;
    const long inner = k % parameters.l, step = n / each * k;
    const C sign = (C)parameters.sign;
    C sum_re = 0, sum_im = 0;
    long angle = 0;
    for (long b = 0; b < parameters.p; ++b) {
#if IS_FIRST
        const long element = q + parameters.m * b;
#else
        const long element = (q + parameters.m * b) * parameters.l + inner;
#endif
        LOAD(element)
        const C cosine = cosines[angle], sine = sign * sines[angle];
        sum_re += x_re * cosine - x_im * sine;
        sum_im += x_re * sine + x_im * cosine;
        angle += step;
        if (angle >= n) angle -= n;
    }
    STORE(item, sum_re, sum_im)
}
#endif
