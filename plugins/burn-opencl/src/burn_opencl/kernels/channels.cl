// Normalization of channels: of (images, channels, places) all elements of a channel together. They
// are counted through, in parts; the parts are joined in order.

typedef struct {
    long images, channels, places, parts, chunk, type, statistic_type, x_start, g_start,
        gamma_start, beta_start, mean_start, variance_start, epsilon, has_gamma, has_beta;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif

#if IS_DOUBLE
#define WIDE FLOAT64
#else
#define WIDE FLOAT32
#endif

// On a CPU an item goes along the places of an image, in vectors of 64 bytes.
#if IS_CPU
#if IS_DOUBLE
#define WIDTH 8
#else
#define WIDTH 16
#endif
#define V JOIN(C, WIDTH)
#define OWN ITEM
#define SHARED
#define TOTAL(v) total(v)
#define IS_FIRST 1
#define LOADED(p, place, fill) loaded(p, place, left, TYPE, fill)
#define STORED(p, place, v) stored(p, place, left, TYPE, v)
#define WALK                                                                     \
    for (long m = first, run = 0; m < stop; m += run) {                          \
        const long image = m / places, rest = m - image * places;                \
        run = places - rest < stop - m ? places - rest : stop - m;               \
        const long at = (image * parameters.channels + channel) * places + rest; \
        for (long j = 0; j < run; j += WIDTH) {                                  \
            const long place = at + j, left = run - j;
#define ROW                                                                      \
    const long row = ITEM, places = parameters.places;                           \
    if (row >= parameters.images * parameters.channels) return;                  \
    const long channel = row % parameters.channels;                              \
    FACTORS                                                                      \
    for (long j = 0; j < places; j += WIDTH) {                                   \
        const long place = row * places + j, left = places - j;

inline V loaded(GLOBAL const void* p, long place, long left, int type, C fill) {
    if (left >= WIDTH && type == WIDE) return JOIN(vload, WIDTH)(0, AS(const C, p) + place);
    C values[WIDTH];
    for (int j = 0; j < WIDTH; ++j) values[j] = j < left ? READ(p, place + j, type) : fill;
    return JOIN(vload, WIDTH)(0, values);
}
inline void stored(GLOBAL void* p, long place, long left, int type, V x) {
    if (left >= WIDTH && type == WIDE) {
        JOIN(vstore, WIDTH)(x, 0, AS(C, p) + place);
        return;
    }
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    for (int j = 0; j < WIDTH && j < left; ++j) WRITE(p, place + j, type, values[j]);
}
inline C total(V x) {
    C values[WIDTH];
    JOIN(vstore, WIDTH)(x, 0, values);
    C sum = values[0];
    for (int j = 1; j < WIDTH; ++j) sum += values[j];
    return sum;
}
#else
#define V C
#define OWN GROUP
#define SHARED LOCAL C shared[GROUP_SIZE];
#define TOTAL(v) total(v, shared)
#define IS_FIRST (LANE == 0)
#define LOADED(p, place, fill) READ(p, place, TYPE)
#define STORED(p, place, v) WRITE(p, place, TYPE, v)
#define WALK                                                                     \
    for (uint m = (uint)first + (uint)LANE; m < (uint)stop; m += GROUP_SIZE) {   \
        const uint image = m / (uint)places, rest = m - image * (uint)places;    \
        const long place = (image * parameters.channels + channel) * places + rest; {
#define ROW                                                                      \
    {                                                                            \
        const long place = ITEM, places = parameters.places;                     \
        if (place >= parameters.images * parameters.channels * places) return;   \
        const long channel = place / places % parameters.channels;               \
        FACTORS

inline C total(C own, LOCAL C* shared) {
    shared[LANE] = own;
    for (int step = GROUP_SIZE / 2; step > 0; step /= 2) {
        BARRIER;
        if (LANE < step) shared[LANE] += shared[LANE + step];
    }
    BARRIER;
    const C sum = shared[0];
    BARRIER;
    return sum;
}
#endif
#define END }}

// There are as many groups as there are parts of channels, and on a CPU as many items.
#define PART                                                                     \
    SHARED                                                                       \
    const long own = OWN, part = own % parameters.parts, places = parameters.places; \
    const long channel = own / parameters.parts, count = parameters.images * places; \
    const long first = part * parameters.chunk;                                  \
    const long stop = first + parameters.chunk < count ? first + parameters.chunk : count;

#define STATISTIC(p, start) READ(p, parameters.start + channel, (int)parameters.statistic_type)
#define INVERSE(variance) ((C)1 / sqrt((variance) + OF_NUMBER((ulong)parameters.epsilon)))

#ifdef HAS_channel_moments
// Mean and sum of squares around it of each part.
KERNEL(GROUP_SIZE)
void channel_moments(const Parameters parameters, GLOBAL const void* x, GLOBAL C* parts) {
    PART
    V sum = (V)((C)0), squares = (V)((C)0);
    WALK
        sum += LOADED(x, parameters.x_start + place, (C)0);
    END
    const C mean = TOTAL(sum) / (C)(stop - first);
    WALK
        const V distance = LOADED(x, parameters.x_start + place, mean) - mean;
        squares += distance * distance;
    END
    const C all = TOTAL(squares);
    if (IS_FIRST) {
        parts[2 * own] = mean;
        parts[2 * own + 1] = all;
    }
}

// Those of the channels (T. F. Chan, G. H. Golub and R. J. LeVeque, 1979).
KERNEL(64)
void join_moments(
    const Parameters parameters, GLOBAL const C* parts, GLOBAL C* joined, GLOBAL void* means,
    GLOBAL void* variances) {
    const long channel = ITEM, count = parameters.images * parameters.places;
    if (channel >= parameters.channels) return;
    C mean = 0, squares = 0, seen = 0;
    for (long part = 0; part < parameters.parts; ++part) {
        const long first = part * parameters.chunk, left = count - first;
        const C more = (C)(left < parameters.chunk ? left : parameters.chunk);
        const long place = 2 * (channel * parameters.parts + part);
        const C distance = parts[place] - mean, share = more / (seen + more);
        mean = part ? mean + distance * share : parts[place];
        squares += parts[place + 1] + (part ? distance * distance * seen * share : (C)0);
        seen += more;
    }
    const C variance = squares / (C)count;
    joined[channel] = mean;
    joined[parameters.channels + channel] = variance;
    WRITE(means, channel, TYPE, mean);
    WRITE(variances, channel, TYPE, variance);
}
#endif

#ifdef HAS_channel_slopes
// Sums of the gradient, and of the gradient times the normalized elements.
KERNEL(GROUP_SIZE)
void channel_slopes(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* g,
    GLOBAL const void* means, GLOBAL const void* variances, GLOBAL C* parts) {
    PART
    const C mean = STATISTIC(means, mean_start);
    const C inverse = INVERSE(STATISTIC(variances, variance_start));
    V level = (V)((C)0), bend = (V)((C)0);
    WALK
        const V slope = LOADED(g, parameters.g_start + place, (C)0);
        level += slope;
        bend += slope * ((LOADED(x, parameters.x_start + place, mean) - mean) * inverse);
    END
    const C all = TOTAL(level), steep = TOTAL(bend);
    if (IS_FIRST) {
        parts[2 * own] = all;
        parts[2 * own + 1] = steep;
    }
}

KERNEL(64)
void join_slopes(
    const Parameters parameters, GLOBAL const C* parts, GLOBAL C* joined, GLOBAL void* to_beta,
    GLOBAL void* to_gamma) {
    const long channel = ITEM;
    if (channel >= parameters.channels) return;
    C level = 0, bend = 0;
    for (long part = 0; part < parameters.parts; ++part) {
        const long place = 2 * (channel * parameters.parts + part);
        level += parts[place];
        bend += parts[place + 1];
    }
    joined[channel] = level;
    joined[parameters.channels + channel] = bend;
    WRITE(to_beta, channel, TYPE, level);
    WRITE(to_gamma, channel, TYPE, bend);
}
#endif

#ifdef HAS_normalize_channels
// The mean goes first: a factor of both would lose the digits in which they differ.
#define FACTORS                                                                  \
    const C mean = STATISTIC(means, mean_start);                                 \
    C factor = INVERSE(STATISTIC(variances, variance_start));                    \
    if (parameters.has_gamma) factor *= READ(gamma, parameters.gamma_start + channel, TYPE); \
    const C more =                                                               \
        parameters.has_beta ? READ(beta, parameters.beta_start + channel, TYPE) : (C)0;
KERNEL(GROUP_SIZE)
void normalize_channels(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL const void* beta, GLOBAL const void* means, GLOBAL const void* variances,
    GLOBAL void* out) {
    ROW
        const V normal = (LOADED(x, parameters.x_start + place, mean) - mean) * factor;
        STORED(out, place, parameters.has_beta ? normal + more : normal);
    }
}
#endif

#ifdef HAS_channel_gradient
// What changes the mean or the variance of a channel changes nothing: it is taken out.
#define FACTORS                                                                  \
    const C mean = STATISTIC(means, mean_start);                                 \
    const C inverse = INVERSE(STATISTIC(variances, variance_start));             \
    const C count = (C)(parameters.images * parameters.places);                  \
    const C level = joined[channel] / count;                                     \
    const C bend = joined[parameters.channels + channel] / count;                \
    const C factor = parameters.has_gamma                                        \
        ? inverse * READ(gamma, parameters.gamma_start + channel, TYPE) : inverse;
KERNEL(GROUP_SIZE)
void channel_gradient(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* g,
    GLOBAL const void* gamma, GLOBAL const void* means, GLOBAL const void* variances,
    GLOBAL const C* joined, GLOBAL void* out) {
    ROW
        const V normal = (LOADED(x, parameters.x_start + place, mean) - mean) * inverse;
        const V rest = LOADED(g, parameters.g_start + place, (C)0) - level - normal * bend;
        STORED(out, place, rest * factor);
    }
}
#endif
