// One step of a Fourier transform of rows of n elements (T. G. Stockham, 1966; for any factors). From
// the transforms of the elements at a distance of m * p, each of l of them, those at a distance of m:
// out[q, k] = sum over b < p of w**(b k) * x[q + m b, k mod l], where w is the root of order l p.

typedef struct {
    long rows, n, p, l, m, kept, length, sign, start_re, start_im, source, target, mirrored, scale;
} Parameters;

// The first step reads the signal: beyond its end there are zeros; of half of a spectrum the rest is
// mirrored. The last step writes what is asked for.
#if IS_FIRST
#define RE(place) READ(re, parameters.start_re + row * parameters.length + (place), (int)parameters.source)
#if IS_REAL
#define IM(place) ((C)0)
#else
#define IM(place) READ(im, parameters.start_im + row * parameters.length + (place), (int)parameters.source)
#endif
#define LOAD(place)                                                              \
    const int is_mirrored = parameters.mirrored && 2 * (place) > n;              \
    const long from = is_mirrored ? n - (place) : (place);                       \
    const int is_there = from < parameters.length;                               \
    const int is_real = parameters.mirrored && (from == 0 || 2 * from == n);     \
    const C x_re = is_there ? RE(from) : (C)0;                                   \
    const C y_im = is_there && !is_real ? IM(from) : (C)0;                       \
    const C x_im = is_mirrored ? -y_im : y_im;
#else
#define LOAD(place)                                                              \
    const C x_re = AS(const C, re)[row * n + (place)];                           \
    const C x_im = AS(const C, im)[row * n + (place)];
#endif

#if IS_LAST
#define STORE(place, x, y)                                                       \
    {                                                                            \
        const C scale = OF_NUMBER((ulong)parameters.scale);                      \
        WRITE(out_re, place, (int)parameters.target, (x) * scale);               \
        if (!parameters.mirrored) WRITE(out_im, place, (int)parameters.target, (y) * scale); \
    }
#else
#define STORE(place, x, y)                                                       \
    {                                                                            \
        AS(C, out_re)[place] = x;                                                \
        AS(C, out_im)[place] = y;                                                \
    }
#endif

#ifdef P
// An item makes the P outputs that are of the same elements.
KERNEL(64)
void transform(
    const Parameters parameters, GLOBAL const void* re, GLOBAL const void* im,
    GLOBAL const C* cosines, GLOBAL const C* sines, GLOBAL void* out_re, GLOBAL void* out_im) {
    const long n = parameters.n, kept = parameters.kept, l = parameters.l, m = parameters.m;
    const W item = ITEM, groups = n / P, row = item / groups, rest = item - row * groups;
    if (row >= parameters.rows) return;
    const W q = rest / (W)l, k = rest - q * (W)l, step = (W)m * k;
    const C sign = (C)parameters.sign;
    C t_re[P], t_im[P];
    for (int b = 0; b < P; ++b) {
#if IS_FIRST
        const long at = q + m * b;
#else
        const long at = (q + m * b) * l + k;
#endif
        LOAD(at)
        const C cosine = cosines[step * b], sine = sign * sines[step * b];
        t_re[b] = x_re * cosine - x_im * sine;
        t_im[b] = x_re * sine + x_im * cosine;
    }
#if P == 4
    const long place = q * l * P + k, base = row * kept + place;
    const C a_re = t_re[0] + t_re[2], a_im = t_im[0] + t_im[2];
    const C b_re = t_re[0] - t_re[2], b_im = t_im[0] - t_im[2];
    const C c_re = t_re[1] + t_re[3], c_im = t_im[1] + t_im[3];
    const C d_re = sign * (t_re[1] - t_re[3]), d_im = sign * (t_im[1] - t_im[3]);
    if (place < kept) STORE(base, a_re + c_re, a_im + c_im)
    if (place + l < kept) STORE(base + l, b_re - d_im, b_im + d_re)
    if (place + 2 * l < kept) STORE(base + 2 * l, a_re - c_re, a_im - c_im)
    if (place + 3 * l < kept) STORE(base + 3 * l, b_re + d_im, b_im - d_re)
#else
    for (int c = 0; c < P; ++c) {
        const long place = q * l * P + k + l * c;
        C sum_re = 0, sum_im = 0;
        for (int b = 0; b < P; ++b) {
            const long turn = (long)groups * (b * c % P);
            const C cosine = cosines[turn], sine = sign * sines[turn];
            sum_re += t_re[b] * cosine - t_im[b] * sine;
            sum_im += t_re[b] * sine + t_im[b] * cosine;
        }
        if (place < kept) STORE(row * kept + place, sum_re, sum_im)
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
    const long row = item / kept, place = item - row * kept;
    const long each = parameters.l * parameters.p, q = place / each, k = place - q * each;
    const long inner = k % parameters.l, step = n / each * k;
    const C sign = (C)parameters.sign;
    C sum_re = 0, sum_im = 0;
    long turn = 0;
    for (long b = 0; b < parameters.p; ++b) {
#if IS_FIRST
        const long at = q + parameters.m * b;
#else
        const long at = (q + parameters.m * b) * parameters.l + inner;
#endif
        LOAD(at)
        const C cosine = cosines[turn], sine = sign * sines[turn];
        sum_re += x_re * cosine - x_im * sine;
        sum_im += x_re * sine + x_im * cosine;
        turn += step;
        if (turn >= n) turn -= n;
    }
    STORE(item, sum_re, sum_im)
}
#endif
