// Batch normalization of (images, channels, positions). The elements of a channel are reduced in parts;
// the results of the parts are combined in order.

typedef struct {
    long images, channels, positions, parts, chunk, type, statistic_type, x_offset, g_offset,
        gamma_offset, beta_offset, mean_offset, variance_offset, epsilon, has_gamma, has_beta;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#endif

// An item of a CPU iterates over the positions of an image in vectors (row_helpers.cl), a group of a
// GPU over the elements of a part.
#if IS_CPU
#define PART_INDEX ITEM
#define IS_FIRST_LANE 1
#define LOADED(p, index, fill) load_vector(p, index, left, TYPE, fill)
#define STORED(p, index, v) store_vector(p, index, left, TYPE, v)
#define EACH_OF_PART                                                                  \
    for (long m = first, run = 0; m < stop; m += run) {                               \
        const long image = m / positions, rest = m - image * positions;               \
        run = positions - rest < stop - m ? positions - rest : stop - m;              \
        const long base = (image * parameters.channels + channel) * positions + rest; \
        for (long j = 0; j < run; j += VECTOR_WIDTH) {                                \
            const long index = base + j, left = run - j;
#define EACH_ELEMENT                                            \
    const long row = ITEM, positions = parameters.positions;    \
    if (row >= parameters.images * parameters.channels) return; \
    const long channel = row % parameters.channels;             \
    FACTORS                                                     \
    for (long j = 0; j < positions; j += VECTOR_WIDTH) {        \
        const long index = row * positions + j, left = positions - j;
#else
#define PART_INDEX GROUP
#define IS_FIRST_LANE (LANE == 0)
#define LOADED(p, index, fill) READ(p, index, TYPE)
#define STORED(p, index, v) WRITE(p, index, TYPE, v)
#define EACH_OF_PART                                                                \
    for (uint m = (uint)first + (uint)LANE; m < (uint)stop; m += GROUP_SIZE) {      \
        const uint image = m / (uint)positions, rest = m - image * (uint)positions; \
        const long index = (image * parameters.channels + channel) * positions + rest; {
#define EACH_ELEMENT                                                              \
    {                                                                             \
        const long index = ITEM, positions = parameters.positions;                \
        if (index >= parameters.images * parameters.channels * positions) return; \
        const long channel = index / positions % parameters.channels;             \
        FACTORS
#endif
#define END }}

// There are as many groups as there are parts of channels, and on a CPU as many items.
#define PART_OF_CHANNEL                                                                   \
    SHARED                                                                                \
    const long part_index = PART_INDEX, part = part_index % parameters.parts;             \
    const long channel = part_index / parameters.parts, positions = parameters.positions; \
    const long count = parameters.images * positions;                                     \
    const long first = part * parameters.chunk;                                           \
    const long stop = first + parameters.chunk < count ? first + parameters.chunk : count;

#define STATISTIC(p, offset) READ(p, parameters.offset + channel, (int)parameters.statistic_type)
#define INVERSE_DEVIATION(variance) ((C)1 / sqrt((variance) + SCALAR((ulong)parameters.epsilon)))

#ifdef HAS_channel_moments
// Mean of each part, and sum of squares around it.
KERNEL(GROUP_SIZE)
void channel_moments(const Parameters parameters, GLOBAL const void* x, GLOBAL C* parts) {
    PART_OF_CHANNEL
    V sum = (V)((C)0), squares = (V)((C)0);
    EACH_OF_PART
        sum += LOADED(x, parameters.x_offset + index, (C)0);
    END
    const C mean = ACROSS_LANES(row_sum, sum) / (C)(stop - first);
    EACH_OF_PART
        const V distance = LOADED(x, parameters.x_offset + index, mean) - mean;
        squares += distance * distance;
    END
    const C all = ACROSS_LANES(row_sum, squares);
    if (IS_FIRST_LANE) {
        parts[2 * part_index] = mean;
        parts[2 * part_index + 1] = all;
    }
}

// Mean and variance of the channels (T. F. Chan, G. H. Golub and R. J. LeVeque, 1979).
KERNEL(64)
void combine_moments(
    const Parameters parameters, GLOBAL const C* parts, GLOBAL C* statistics, GLOBAL void* means,
    GLOBAL void* variances) {
    const long channel = ITEM, count = parameters.images * parameters.positions;
    if (channel >= parameters.channels) return;
    C mean = 0, squares = 0, counted = 0;
    for (long part = 0; part < parameters.parts; ++part) {
        const long first = part * parameters.chunk, left = count - first;
        const C added = (C)(left < parameters.chunk ? left : parameters.chunk);
        const long index = 2 * (channel * parameters.parts + part);
        const C distance = parts[index] - mean, share = added / (counted + added);
        mean = part ? mean + distance * share : parts[index];
        squares += parts[index + 1] + (part ? distance * distance * counted * share : (C)0);
        counted += added;
    }
    const C variance = squares / (C)count;
    statistics[channel] = mean;
    statistics[parameters.channels + channel] = variance;
    WRITE(means, channel, TYPE, mean);
    WRITE(variances, channel, TYPE, variance);
}
#endif

#ifdef HAS_channel_grad_sums
// Sums over each part of the gradient, and of the gradient times the normalized elements.
KERNEL(GROUP_SIZE)
void channel_grad_sums(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* g,
    GLOBAL const void* means, GLOBAL const void* variances, GLOBAL C* parts) {
    PART_OF_CHANNEL
    const C mean = STATISTIC(means, mean_offset);
    const C inverse = INVERSE_DEVIATION(STATISTIC(variances, variance_offset));
    V sum = (V)((C)0), projected = (V)((C)0);
    EACH_OF_PART
        const V value = LOADED(g, parameters.g_offset + index, (C)0);
        sum += value;
        projected += value * ((LOADED(x, parameters.x_offset + index, mean) - mean) * inverse);
    END
    const C all = ACROSS_LANES(row_sum, sum), all_projected = ACROSS_LANES(row_sum, projected);
    if (IS_FIRST_LANE) {
        parts[2 * part_index] = all;
        parts[2 * part_index + 1] = all_projected;
    }
}

KERNEL(64)
void combine_grad_sums(
    const Parameters parameters, GLOBAL const C* parts, GLOBAL C* statistics, GLOBAL void* beta_grad,
    GLOBAL void* gamma_grad) {
    const long channel = ITEM;
    if (channel >= parameters.channels) return;
    C sum = 0, projected = 0;
    for (long part = 0; part < parameters.parts; ++part) {
        const long index = 2 * (channel * parameters.parts + part);
        sum += parts[index];
        projected += parts[index + 1];
    }
    statistics[channel] = sum;
    statistics[parameters.channels + channel] = projected;
    WRITE(beta_grad, channel, TYPE, sum);
    WRITE(gamma_grad, channel, TYPE, projected);
}
#endif

#ifdef HAS_normalize_channels
// The mean is subtracted before the product, which would lose the digits in which the two differ.
#define FACTORS                                                                               \
    const C mean = STATISTIC(means, mean_offset);                                             \
    C factor = INVERSE_DEVIATION(STATISTIC(variances, variance_offset));                      \
    if (parameters.has_gamma) factor *= READ(gamma, parameters.gamma_offset + channel, TYPE); \
    const C shift =                                                                           \
        parameters.has_beta ? READ(beta, parameters.beta_offset + channel, TYPE) : (C)0;
KERNEL(GROUP_SIZE)
void normalize_channels(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* gamma,
    GLOBAL const void* beta, GLOBAL const void* means, GLOBAL const void* variances,
    GLOBAL void* out) {
    EACH_ELEMENT
        const V normal = (LOADED(x, parameters.x_offset + index, mean) - mean) * factor;
        STORED(out, index, parameters.has_beta ? normal + shift : normal);
    }
}
#endif

#ifdef HAS_channel_gradient
// The output does not change with mean or variance of a channel, so these components are subtracted.
#define FACTORS                                                                 \
    const C mean = STATISTIC(means, mean_offset);                               \
    const C inverse = INVERSE_DEVIATION(STATISTIC(variances, variance_offset)); \
    const C count = (C)(parameters.images * parameters.positions);              \
    const C mean_grad = statistics[channel] / count;                            \
    const C projected_grad = statistics[parameters.channels + channel] / count; \
    const C factor = parameters.has_gamma                                       \
        ? inverse * READ(gamma, parameters.gamma_offset + channel, TYPE) : inverse;
KERNEL(GROUP_SIZE)
void channel_gradient(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* g,
    GLOBAL const void* gamma, GLOBAL const void* means, GLOBAL const void* variances,
    GLOBAL const C* statistics, GLOBAL void* out) {
    EACH_ELEMENT
        const V normal = (LOADED(x, parameters.x_offset + index, mean) - mean) * inverse;
        const V centered = LOADED(g, parameters.g_offset + index, (C)0) - mean_grad;
        const V remaining = centered - normal * projected_grad;
        STORED(out, index, remaining * factor);
    }
}
#endif
