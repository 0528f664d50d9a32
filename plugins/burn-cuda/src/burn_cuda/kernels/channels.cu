// T: elements, EACH: elements of a pack, which a thread loads in one access, HAS_...: the kernels to
// compile. x is dense with shape (images, channels, positions); a channel of an image has `packs` packs.

typedef typename Computed<T>::type C;

// Number of elements, their mean, and the sum of the squared deviations from it (Chan, Golub and
// LeVeque, 1979).
struct Moments {
    C count, mean, squares;

    __device__ __forceinline__ static Moments zero() { return Moments{(C)0, (C)0, (C)0}; }
    __device__ __forceinline__ Moments combined(Moments other) const {
        const C all = count + other.count, delta = other.mean - mean;
        const C part = all > (C)0 ? other.count / all : (C)0;
        return Moments{all, mean + delta * part,
                      squares + other.squares + delta * delta * count * part};
    }
};
struct Sums {
    C g, g_times_normalized;

    __device__ __forceinline__ static Sums zero() { return Sums{(C)0, (C)0}; }
    __device__ __forceinline__ Sums combined(Sums other) const {
        return Sums{g + other.g, g_times_normalized + other.g_times_normalized};
    }
};
// Combines the values of the threads of a block in a fixed order; thread 0 has the result.
template <class N>
__device__ __forceinline__ N combined(N own) {
    __shared__ N shared[256];
    const int thread = threadIdx.x;
    shared[thread] = own;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (thread < step) shared[thread] = shared[thread].combined(shared[thread + step]);
    }
    return shared[0];
}

// The packs of a channel, of all images, as one row.
struct Channels {
    int64 channels, packs;
    uint64 packs_divider, channels_divider;

    __device__ __forceinline__ int64 offset(int64 channel, int64 k) const {
        const uint32 image = quotient((uint32)k, packs_divider);
        return (image * channels + channel) * packs + ((uint32)k - image * (uint32)packs);
    }
};
typedef Pack<T, EACH> Chunk;

#ifdef HAS_channel_moments
extern "C" __global__ void __launch_bounds__(256) channel_moments(
    const Chunk* __restrict__ x, Moments* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    Moments own = Moments::zero();
#pragma unroll 4
    for (int64 k = part * chunk + threadIdx.x; k < stop; k += 256) {
        const Chunk pack = x[rows.offset(channel, k)];
        C total = (C)0, squares = (C)0;
#pragma unroll
        for (int j = 0; j < EACH; ++j) total += load(pack.values[j]);
        const C mean = total / (C)EACH;
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const C delta = load(pack.values[j]) - mean;
            squares += delta * delta;
        }
        own = own.combined(Moments{(C)EACH, mean, squares});
    }
    own = combined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
extern "C" __global__ void __launch_bounds__(256) join_moments(
    const Moments* __restrict__ moments, T* __restrict__ mean, T* __restrict__ variance,
    C* __restrict__ statistics, double epsilon, int64 parts, int64 channels) {
    Moments own = Moments::zero();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = own.combined(moments[blockIdx.x * parts + k]);
    own = combined(own);
    if (threadIdx.x) return;
    const C own_variance = own.squares / own.count;
    mean[blockIdx.x] = convert<T>(own.mean);
    variance[blockIdx.x] = convert<T>(own_variance);
    statistics[blockIdx.x] = own.mean;
    statistics[channels + blockIdx.x] = (C)1 / sqrt(own_variance + (C)epsilon);
}
#endif

#ifdef HAS_known_moments
extern "C" __global__ void __launch_bounds__(256) known_moments(
    const T* __restrict__ mean, const T* __restrict__ variance, C* __restrict__ statistics,
    double epsilon, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    statistics[i] = load(mean[i]);
    statistics[n + i] = (C)1 / sqrt(load(variance[i]) + (C)epsilon);
}
#endif

#ifdef HAS_normalized_channels
extern "C" __global__ void __launch_bounds__(256) normalized_channels(
    const Chunk* __restrict__ x, const C* __restrict__ statistics, const T* __restrict__ gamma,
    const T* __restrict__ beta, Chunk* __restrict__ out, const Channels rows, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint32 row = quotient(i, rows.packs_divider);
    const uint32 channel = row - quotient(row, rows.channels_divider) * (uint32)rows.channels;
    const C mean = statistics[channel];
    C factor = statistics[rows.channels + channel];
    if (gamma) factor *= load(gamma[channel]);
    const C shift = beta ? load(beta[channel]) : (C)0;
    const Chunk pack = x[i];
    Chunk result;
    // The mean is subtracted first: x * factor - mean * factor would cancel.
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const C scaled = (load(pack.values[j]) - mean) * factor;
        result.values[j] = convert<T>(beta ? scaled + shift : scaled);
    }
    out[i] = result;
}
#endif

#ifdef HAS_channel_sums
extern "C" __global__ void __launch_bounds__(256) channel_sums(
    const Chunk* __restrict__ x, const Chunk* __restrict__ g,
    const C* __restrict__ statistics, Sums* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const C mean = statistics[channel], inverse_deviation = statistics[rows.channels + channel];
    Sums own = Sums::zero();
#pragma unroll 4
    for (int64 k = part * chunk + threadIdx.x; k < stop; k += 256) {
        const int64 offset = rows.offset(channel, k);
        const Chunk values = x[offset], gradients = g[offset];
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const C g_j = load(gradients.values[j]);
            own.g += g_j;
            own.g_times_normalized += g_j * ((load(values.values[j]) - mean) * inverse_deviation);
        }
    }
    own = combined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
extern "C" __global__ void __launch_bounds__(256) join_sums(
    const Sums* __restrict__ sums, T* __restrict__ to_gamma, T* __restrict__ to_beta,
    C* __restrict__ means, double count, int64 parts, int64 channels) {
    Sums own = Sums::zero();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = own.combined(sums[blockIdx.x * parts + k]);
    own = combined(own);
    if (threadIdx.x) return;
    to_gamma[blockIdx.x] = convert<T>(own.g_times_normalized);
    to_beta[blockIdx.x] = convert<T>(own.g);
    means[blockIdx.x] = own.g / (C)count;
    means[channels + blockIdx.x] = own.g_times_normalized / (C)count;
}
#endif

#ifdef HAS_channel_gradients
extern "C" __global__ void __launch_bounds__(256) channel_gradients(
    const Chunk* __restrict__ x, const Chunk* __restrict__ g,
    const C* __restrict__ statistics, const C* __restrict__ means, const T* __restrict__ gamma,
    Chunk* __restrict__ out, const Channels rows, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint32 row = quotient(i, rows.packs_divider);
    const uint32 channel = row - quotient(row, rows.channels_divider) * (uint32)rows.channels;
    const C mean = statistics[channel], inverse_deviation = statistics[rows.channels + channel];
    const C mean_g = means[channel], mean_g_normalized = means[rows.channels + channel];
    const C factor = gamma ? inverse_deviation * load(gamma[channel]) : inverse_deviation;
    const Chunk values = x[i], gradients = g[i];
    Chunk result;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const C normalized = (load(values.values[j]) - mean) * inverse_deviation;
        const C centred = load(gradients.values[j]) - mean_g - normalized * mean_g_normalized;
        result.values[j] = convert<T>(centred * factor);
    }
    out[i] = result;
}
#endif
