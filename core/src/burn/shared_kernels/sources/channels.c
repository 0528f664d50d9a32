// Batch normalization of (images, channels, positions). A row, the positions of a channel of an image, has
// `packs` of EACH elements. A group of LANES items computes a channel, or a part of its packs, whose
// results are joined. On a CPU an item does.

typedef struct {
    int64 images, channels, positions, packs, parts, chunk, packs_divider, channels_divider, epsilon,
        has_gamma, has_beta, x_offset, g_offset, gamma_offset, beta_offset, mean_offset, variance_offset,
        statistic_type, type;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define STATISTIC_TYPE ((int)parameters.statistic_type)
#endif

// Number of elements, their mean, and the sum of the squared deviations from it (T. F. Chan, G. H. Golub
// and R. J. LeVeque, 1979).
typedef struct {
    C count, mean, squares;
} Moments;
// Of the gradient, and of the gradient times the normalized elements.
typedef struct {
    C g, projected;
} Sums;

FUNCTION Moments joined_moments(Moments x, Moments y) {
    const C all = x.count + y.count, delta = y.mean - x.mean;
    const C share = all > (C)0 ? y.count / all : (C)0;
    x.squares += y.squares + delta * delta * x.count * share;
    x.mean = MULTIPLY_ADD(delta, share, x.mean);
    x.count = all;
    return x;
}
FUNCTION Sums joined_sums(Sums x, Sums y) {
    x.g += y.g;
    x.projected += y.projected;
    return x;
}

// A pack of elements: of a CPU a vector of the dialect, of which the last of a row is padded.
#if IS_CPU
#define PACK(v) V v
#define ZEROS(v) V v = (V)((C)0)
#define OF(v) v
#define EACH_OF_PACK
#define SUM_OF_PACK(v) row_sum(v)
#define LOAD(p, offset, fill, v) v = load_vector(p, parameters.offset + index, left, TYPE, fill);
#define STORE(p, v) store_vector(p, index, left, TYPE, v);
#define ALL_LANES(join, own)
#else
#define PACK(v) C v[EACH]
#define ZEROS(v) C v[EACH] = {(C)0}
#define OF(v) v[j]
#define EACH_OF_PACK UNROLL for (int j = 0; j < EACH; ++j)
#if EACH == 4
#define SUM_OF_PACK(v) ((v[0] + v[1]) + (v[2] + v[3]))
#define LOAD(p, offset, fill, v) READ_FOUR(p, parameters.offset + index, TYPE, v);
#define STORE(p, v) WRITE_FOUR(p, index, TYPE, v);
#else
#define SUM_OF_PACK(v) v[0]
#define LOAD(p, offset, fill, v) v[0] = READ(p, parameters.offset + index, TYPE);
#define STORE(p, v) WRITE(p, index, TYPE, v[0]);
#endif
// Combines the values of the lanes in a fixed order, for the first lane.
#define ALL_LANES(join, own)                                                     \
    shared[LANE] = own;                                                          \
    for (int step = LANES / 2; step > 0; step /= 2) {                            \
        BARRIER;                                                                 \
        if (LANE < step) shared[LANE] = join(shared[LANE], shared[LANE + step]); \
    }                                                                            \
    if (LANE == 0) own = shared[0];
#endif

// The packs of a channel from `start` on, up to `stop`; those of a CPU are elements here.
#if IS_CPU
#define EACH_PACK                                                                          \
    for (int64 m = start, run = 0; m < stop; m += run) {                                   \
        const int64 positions = parameters.positions, image = m / positions;               \
        const int64 rest = m - image * positions;                                          \
        run = positions - rest < stop - m ? positions - rest : stop - m;                   \
        const int64 base = (image * parameters.channels + channel) * positions + rest;     \
        for (int64 k = 0; k < run; k += VECTOR_WIDTH) {                                    \
            const int64 index = base + k, left = run - k;
#else
#define EACH_PACK                                                                          \
    UNROLLED(4) for (int64 k = start + LANE; k < stop; k += LANES) {                       \
        const uint image = quotient_by((uint)k, (uint64)parameters.packs_divider);         \
        const int64 row = image * parameters.channels + channel;                           \
        const int64 index = (row * parameters.packs + (uint)k - image * parameters.packs) * EACH; {
#endif
#define END }}
#define PART_OF_CHANNEL                                                                     \
    const int64 part_index = GROUP, channel = part_index / parameters.parts;                \
    const int64 start = (part_index - channel * parameters.parts) * parameters.chunk;       \
    const int64 n = parameters.images * parameters.packs;                                   \
    const int64 stop = start + parameters.chunk < n ? start + parameters.chunk : n;

// A pack for each item, or a row for each of a CPU.
#if IS_CPU
#define EACH_OF_ROW                                                                    \
    const int64 row = ITEM, positions = parameters.positions;                          \
    if (row >= parameters.images * parameters.channels) return;                        \
    const int64 channel = row % parameters.channels;                                   \
    FACTORS                                                                            \
    for (int64 k = 0; k < positions; k += VECTOR_WIDTH) {                              \
        const int64 index = row * positions + k, left = positions - k; {
#else
#define EACH_OF_ROW                                                                    \
    const int64 item = ITEM;                                                           \
    if (item >= parameters.images * parameters.channels * parameters.packs) return;    \
    const uint row = quotient_by((uint)item, (uint64)parameters.packs_divider);        \
    const uint image = quotient_by(row, (uint64)parameters.channels_divider);          \
    const int64 channel = row - image * (uint)parameters.channels;                     \
    FACTORS                                                                            \
    {                                                                                  \
        const int64 index = item * EACH; {
#endif

FUNCTION C inverse_deviation(C variance, const Parameters parameters) {
    return (C)1 / sqrt(variance + SCALAR((uint64)parameters.epsilon));
}
#define STATISTIC(p, offset) READ(p, parameters.offset + channel, STATISTIC_TYPE)
#define GAMMA (parameters.has_gamma ? READ(gamma, parameters.gamma_offset + channel, TYPE) : (C)1)
#define BETA (parameters.has_beta ? READ(beta, parameters.beta_offset + channel, TYPE) : (C)0)

// The moments of a part, in the first lane.
#define MOMENTS(own)                                                                         \
    Moments own = {(C)0, (C)0, (C)0};                                                        \
    ADD_MOMENTS(own)                                                                         \
    ALL_LANES(joined_moments, own)
#if IS_CPU
// The mean first, then the deviations: a processor keeps what it reads twice.
#define ADD_MOMENTS(own)                                      \
    ZEROS(totals);                                            \
    ZEROS(squares);                                           \
    EACH_PACK                                                 \
        PACK(v);                                              \
        LOAD(x, x_offset, (C)0, v)                            \
        totals += v;                                          \
    END                                                       \
    own.count = (C)(stop - start);                            \
    own.mean = SUM_OF_PACK(totals) / own.count;               \
    EACH_PACK                                                 \
        PACK(v);                                              \
        LOAD(x, x_offset, own.mean, v)                        \
        v -= own.mean;                                        \
        squares += v * v;                                     \
    END                                                       \
    own.squares = SUM_OF_PACK(squares);
#else
#define ADD_MOMENTS(own)                                                      \
    EACH_PACK                                                                 \
        PACK(v);                                                              \
        LOAD(x, x_offset, (C)0, v)                                            \
        Moments added = {(C)EACH, SUM_OF_PACK(v) / (C)EACH, (C)0};            \
        EACH_OF_PACK v[j] -= added.mean;                                      \
        EACH_OF_PACK added.squares = MULTIPLY_ADD(v[j], v[j], added.squares); \
        own = joined_moments(own, added);                                     \
    END
#endif

// The sums of a part, in the first lane.
#define SUMS(own)                                                                        \
    ZEROS(gs);                                                                           \
    ZEROS(projected);                                                                    \
    EACH_PACK                                                                            \
        PACK(v);                                                                         \
        PACK(slopes);                                                                    \
        LOAD(x, x_offset, mean, v)                                                       \
        LOAD(g, g_offset, (C)0, slopes)                                                  \
        EACH_OF_PACK OF(gs) += OF(slopes);                                               \
        EACH_OF_PACK OF(projected) =                                                     \
            MULTIPLY_ADD(OF(slopes), (OF(v) - mean) * inverse, OF(projected));           \
    END                                                                                  \
    Sums own = {SUM_OF_PACK(gs), SUM_OF_PACK(projected)};                                \
    ALL_LANES(joined_sums, own)

// The mean is subtracted first: x * factor - mean * factor would cancel.
#define NORMALIZE                                                                 \
    PACK(v);                                                                      \
    LOAD(x, x_offset, mean, v)                                                    \
    EACH_OF_PACK OF(v) = MULTIPLY_ADD(OF(v) - mean, factor, shift);               \
    STORE(out, v)
// The output does not change with mean or variance of a channel, so these components are subtracted.
#define GRADIENT                                                                       \
    PACK(v);                                                                           \
    PACK(slopes);                                                                      \
    LOAD(x, x_offset, mean, v)                                                         \
    LOAD(g, g_offset, (C)0, slopes)                                                    \
    EACH_OF_PACK OF(v) = (OF(v) - mean) * inverse;                                     \
    EACH_OF_PACK OF(v) = (OF(slopes) - mean_g - OF(v) * mean_projected) * factor;      \
    STORE(out, v)

// All of a channel, which is read twice, the second time from a cache.
#ifdef HAS_whole_channels
KERNEL(LANES) void whole_channels(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict gamma,
    GLOBAL const void* restrict beta, GLOBAL void* restrict means, GLOBAL void* restrict variances,
    GLOBAL void* restrict out) {
    LOCAL Moments shared[LANES];
    LOCAL C known[2];
    PART_OF_CHANNEL
    MOMENTS(own)
    if (LANE == 0) {
        const C variance = own.squares / own.count;
        WRITE(means, channel, TYPE, own.mean);
        WRITE(variances, channel, TYPE, variance);
        known[0] = own.mean;
        known[1] = inverse_deviation(variance, parameters);
    }
    BARRIER;
    const C mean = known[0], factor = known[1] * GAMMA, shift = BETA;
    EACH_PACK
        NORMALIZE
    END
}
#endif
#ifdef HAS_whole_channel_gradients
KERNEL(LANES) void whole_channel_gradients(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict g,
    GLOBAL const void* restrict gamma, GLOBAL const void* restrict means,
    GLOBAL const void* restrict variances, GLOBAL void* restrict out, GLOBAL void* restrict to_gamma,
    GLOBAL void* restrict to_beta) {
    LOCAL Sums shared[LANES];
    LOCAL C known[2];
    PART_OF_CHANNEL
    const C mean = STATISTIC(means, mean_offset), count = (C)(parameters.images * parameters.positions);
    const C inverse = inverse_deviation(STATISTIC(variances, variance_offset), parameters);
    SUMS(own)
    if (LANE == 0) {
        WRITE(to_gamma, channel, TYPE, own.projected);
        WRITE(to_beta, channel, TYPE, own.g);
        known[0] = own.g / count;
        known[1] = own.projected / count;
    }
    BARRIER;
    const C mean_g = known[0], mean_projected = known[1], factor = inverse * GAMMA;
    EACH_PACK
        GRADIENT
    END
}
#endif

// Several parts of each channel, and kernels that join what they find. `statistics` has the means, or
// those of g, and then the variances, or the means of g times normalized elements.
#ifdef HAS_channel_moments
KERNEL(LANES) void channel_moments(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL Moments* restrict out) {
    LOCAL Moments shared[LANES];
    PART_OF_CHANNEL
    MOMENTS(own)
    if (LANE == 0) out[part_index] = own;
}
KERNEL(LANES) void join_moments(
    const Parameters parameters, GLOBAL const Moments* restrict moments, GLOBAL void* restrict means,
    GLOBAL void* restrict variances, GLOBAL C* restrict statistics) {
    LOCAL Moments shared[LANES];
    const int64 channel = GROUP;
    Moments own = {(C)0, (C)0, (C)0};
    for (int64 k = LANE; k < parameters.parts; k += LANES)
        own = joined_moments(own, moments[channel * parameters.parts + k]);
    ALL_LANES(joined_moments, own)
    if (LANE) return;
    const C variance = own.squares / own.count;
    WRITE(means, channel, TYPE, own.mean);
    WRITE(variances, channel, TYPE, variance);
    statistics[channel] = own.mean;
    statistics[parameters.channels + channel] = variance;
}
#endif
#ifdef HAS_normalized_channels
#define FACTORS                                                                                   \
    const C mean = STATISTIC(means, mean_offset), shift = BETA;                                   \
    const C factor = inverse_deviation(STATISTIC(variances, variance_offset), parameters) * GAMMA;
KERNEL(LANES) void normalized_channels(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict gamma,
    GLOBAL const void* restrict beta, GLOBAL const void* restrict means,
    GLOBAL const void* restrict variances, GLOBAL void* restrict out) {
    EACH_OF_ROW
        NORMALIZE
    END
}
#endif
#ifdef HAS_channel_sums
KERNEL(LANES) void channel_sums(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict g,
    GLOBAL const void* restrict means, GLOBAL const void* restrict variances, GLOBAL Sums* restrict out) {
    LOCAL Sums shared[LANES];
    PART_OF_CHANNEL
    const C mean = STATISTIC(means, mean_offset);
    const C inverse = inverse_deviation(STATISTIC(variances, variance_offset), parameters);
    SUMS(own)
    if (LANE == 0) out[part_index] = own;
}
KERNEL(LANES) void join_sums(
    const Parameters parameters, GLOBAL const Sums* restrict sums, GLOBAL void* restrict to_gamma,
    GLOBAL void* restrict to_beta, GLOBAL C* restrict statistics) {
    LOCAL Sums shared[LANES];
    const int64 channel = GROUP;
    const C count = (C)(parameters.images * parameters.positions);
    Sums own = {(C)0, (C)0};
    for (int64 k = LANE; k < parameters.parts; k += LANES)
        own = joined_sums(own, sums[channel * parameters.parts + k]);
    ALL_LANES(joined_sums, own)
    if (LANE) return;
    WRITE(to_gamma, channel, TYPE, own.projected);
    WRITE(to_beta, channel, TYPE, own.g);
    statistics[channel] = own.g / count;
    statistics[parameters.channels + channel] = own.projected / count;
}
#endif
#ifdef HAS_channel_gradients
#define FACTORS                                                                               \
    const C mean = STATISTIC(means, mean_offset);                                             \
    const C inverse = inverse_deviation(STATISTIC(variances, variance_offset), parameters);   \
    const C mean_g = statistics[channel], factor = inverse * GAMMA;                           \
    const C mean_projected = statistics[parameters.channels + channel];
KERNEL(LANES) void channel_gradients(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict g,
    GLOBAL const void* restrict gamma, GLOBAL const void* restrict means,
    GLOBAL const void* restrict variances, GLOBAL const C* restrict statistics,
    GLOBAL void* restrict out) {
    EACH_OF_ROW
        GRADIENT
    END
}
#endif
