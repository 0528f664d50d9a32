// T: elements, EACH: elements of a pack, which a thread loads in one access, LANES: threads of a block,
// HAS_...: the kernels to compile. x is dense with shape (images, channels, positions); a channel of an
// image has `packs` packs.

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
    __shared__ N shared[LANES];
    const int thread = threadIdx.x;
    shared[thread] = own;
    for (int step = LANES / 2; step > 0; step /= 2) {
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

// Moments of the packs of a channel from `start` on, up to `stop`; thread 0 has the result.
__device__ __forceinline__ Moments moments_of(
    const Chunk* __restrict__ x, const Channels& rows, int64 channel, int64 start, int64 stop) {
    Moments own = Moments::zero();
#pragma unroll 4
    for (int64 k = start + threadIdx.x; k < stop; k += LANES) {
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
    return combined(own);
}
// The mean is subtracted first: x * factor - mean * factor would cancel.
__device__ __forceinline__ Chunk normalized(Chunk x, C mean, C factor, bool has_shift, C shift) {
    Chunk result;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const C scaled = (load(x.values[j]) - mean) * factor;
        result.values[j] = convert<T>(has_shift ? scaled + shift : scaled);
    }
    return result;
}
// What the gradients of a channel need to know of it.
struct Known {
    C mean, inverse_deviation;

    __device__ __forceinline__ C normalized(T x) const { return (load(x) - mean) * inverse_deviation; }
};
// Sums of the packs of a channel from `start` on, up to `stop`; thread 0 has the result.
__device__ __forceinline__ Sums sums_of(
    const Chunk* __restrict__ x, const Chunk* __restrict__ g, Known known, const Channels& rows,
    int64 channel, int64 start, int64 stop) {
    Sums own = Sums::zero();
#pragma unroll 4
    for (int64 k = start + threadIdx.x; k < stop; k += LANES) {
        const int64 offset = rows.offset(channel, k);
        const Chunk values = x[offset], gradients = g[offset];
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const C g_j = load(gradients.values[j]);
            own.g += g_j;
            own.g_times_normalized += g_j * known.normalized(values.values[j]);
        }
    }
    return combined(own);
}
__device__ __forceinline__ Chunk gradients_of(
    Chunk x, Chunk g, Known known, C mean_g, C mean_g_normalized, C factor) {
    Chunk result;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const C slope = known.normalized(x.values[j]) * mean_g_normalized;
        result.values[j] = convert<T>((load(g.values[j]) - mean_g - slope) * factor);
    }
    return result;
}

// A block for each channel, which it loads twice.
#ifdef HAS_whole_channels
extern "C" __global__ void __launch_bounds__(LANES) whole_channels(
    const Chunk* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
    T* __restrict__ mean, T* __restrict__ variance, Chunk* __restrict__ out, const Channels rows,
    double epsilon, int64 n) {
    const int64 channel = blockIdx.x;
    __shared__ Known known;
    const Moments own = moments_of(x, rows, channel, 0, n);
    if (threadIdx.x == 0) {
        const C own_variance = own.squares / own.count;
        mean[channel] = convert<T>(own.mean);
        variance[channel] = convert<T>(own_variance);
        known = Known{own.mean, (C)1 / sqrt(own_variance + (C)epsilon)};
    }
    __syncthreads();
    C factor = known.inverse_deviation;
    if (gamma) factor *= load(gamma[channel]);
    const C shift = beta ? load(beta[channel]) : (C)0;
#pragma unroll 4
    for (int64 k = threadIdx.x; k < n; k += LANES) {
        const int64 offset = rows.offset(channel, k);
        out[offset] = normalized(x[offset], known.mean, factor, beta, shift);
    }
}
#endif
#ifdef HAS_whole_channel_gradients
extern "C" __global__ void __launch_bounds__(LANES) whole_channel_gradients(
    const Chunk* __restrict__ x, const Chunk* __restrict__ g, const T* __restrict__ gamma,
    const T* __restrict__ mean, const T* __restrict__ variance, Chunk* __restrict__ out,
    T* __restrict__ to_gamma, T* __restrict__ to_beta, const Channels rows, double epsilon, int64 n) {
    const int64 channel = blockIdx.x;
    __shared__ Sums total;
    const Known known{load(mean[channel]), (C)1 / sqrt(load(variance[channel]) + (C)epsilon)};
    const Sums own = sums_of(x, g, known, rows, channel, 0, n);
    if (threadIdx.x == 0) {
        to_gamma[channel] = convert<T>(own.g_times_normalized);
        to_beta[channel] = convert<T>(own.g);
        total = own;
    }
    __syncthreads();
    const C count = (C)(n * EACH);
    const C mean_g = total.g / count, mean_g_normalized = total.g_times_normalized / count;
    const C factor = gamma ? known.inverse_deviation * load(gamma[channel]) : known.inverse_deviation;
#pragma unroll 4
    for (int64 k = threadIdx.x; k < n; k += LANES) {
        const int64 offset = rows.offset(channel, k);
        out[offset] = gradients_of(x[offset], g[offset], known, mean_g, mean_g_normalized, factor);
    }
}
#endif

// Several blocks for each channel, and kernels that join what they find.
#ifdef HAS_channel_moments
extern "C" __global__ void __launch_bounds__(256) channel_moments(
    const Chunk* __restrict__ x, Moments* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const Moments own = moments_of(x, rows, channel, part * chunk, stop);
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
    out[i] = normalized(x[i], mean, factor, beta, shift);
}
#endif

#ifdef HAS_channel_sums
extern "C" __global__ void __launch_bounds__(256) channel_sums(
    const Chunk* __restrict__ x, const Chunk* __restrict__ g,
    const C* __restrict__ statistics, Sums* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const Known known{statistics[channel], statistics[rows.channels + channel]};
    const Sums own = sums_of(x, g, known, rows, channel, part * chunk, stop);
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
    const Known known{statistics[channel], statistics[rows.channels + channel]};
    const C factor = gamma ? known.inverse_deviation * load(gamma[channel]) : known.inverse_deviation;
    out[i] = gradients_of(x[i], g[i], known, means[channel], means[rows.channels + channel], factor);
}
#endif
