// T: elements, EACH: how many a thread takes at once, HAS_...: which of the kernels are compiled.
// Elements lie as (images, channels, places); an image has `packs` packs of EACH of each channel.

typedef typename Computed<T>::type C;

// How many elements there are, their mean, and the sum of the squares around it (Chan, Golub and
// LeVeque, 1979).
struct Spread {
    C count, mean, squares;

    __device__ __forceinline__ static Spread none() { return Spread{(C)0, (C)0, (C)0}; }
    __device__ __forceinline__ Spread joined(Spread other) const {
        const C all = count + other.count, distance = other.mean - mean;
        const C part = all > (C)0 ? other.count / all : (C)0;
        return Spread{all, mean + distance * part,
                      squares + other.squares + distance * distance * count * part};
    }
};
struct Sums {
    C slopes, steep;

    __device__ __forceinline__ static Sums none() { return Sums{(C)0, (C)0}; }
    __device__ __forceinline__ Sums joined(Sums other) const {
        return Sums{slopes + other.slopes, steep + other.steep};
    }
};
// What the threads of a block hold, joined in a fixed order; the first one has the result.
template <class N>
__device__ __forceinline__ N joined(N own) {
    __shared__ N shared[256];
    const int thread = threadIdx.x;
    shared[thread] = own;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (thread < step) shared[thread] = shared[thread].joined(shared[thread + step]);
    }
    return shared[0];
}

// The elements of a channel, as one row of packs.
struct Channels {
    int64 channels, packs;
    uint64 by_packs, by_channels;

    __device__ __forceinline__ int64 place(int64 channel, int64 k) const {
        const uint32 image = quotient((uint32)k, by_packs);
        return (image * channels + channel) * packs + ((uint32)k - image * (uint32)packs);
    }
};
typedef Pack<T, EACH> Together;

#ifdef HAS_channel_moments
extern "C" __global__ void __launch_bounds__(256) channel_moments(
    const Together* __restrict__ x, Spread* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    Spread own = Spread::none();
#pragma unroll 4
    for (int64 k = part * chunk + threadIdx.x; k < stop; k += 256) {
        const Together pack = x[rows.place(channel, k)];
        C total = (C)0, squares = (C)0;
#pragma unroll
        for (int j = 0; j < EACH; ++j) total += load(pack.values[j]);
        const C mean = total / (C)EACH;
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const C distance = load(pack.values[j]) - mean;
            squares += distance * distance;
        }
        own = own.joined(Spread{(C)EACH, mean, squares});
    }
    own = joined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
extern "C" __global__ void __launch_bounds__(256) join_moments(
    const Spread* __restrict__ moments, T* __restrict__ mean, T* __restrict__ variance,
    C* __restrict__ statistics, double epsilon, int64 parts, int64 channels) {
    Spread own = Spread::none();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = own.joined(moments[blockIdx.x * parts + k]);
    own = joined(own);
    if (threadIdx.x) return;
    const C spread = own.squares / own.count;
    mean[blockIdx.x] = convert<T>(own.mean);
    variance[blockIdx.x] = convert<T>(spread);
    statistics[blockIdx.x] = own.mean;
    statistics[channels + blockIdx.x] = (C)1 / sqrt(spread + (C)epsilon);
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
    const Together* __restrict__ x, const C* __restrict__ statistics, const T* __restrict__ gamma,
    const T* __restrict__ beta, Together* __restrict__ out, const Channels rows, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint32 row = quotient(i, rows.by_packs);
    const uint32 channel = row - quotient(row, rows.by_channels) * (uint32)rows.channels;
    const C mean = statistics[channel];
    C factor = statistics[rows.channels + channel];
    if (gamma) factor *= load(gamma[channel]);
    const C shift = beta ? load(beta[channel]) : (C)0;
    const Together pack = x[i];
    Together result;
    // The mean goes first: a factor of both would lose the digits in which they differ.
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
    const Together* __restrict__ x, const Together* __restrict__ g,
    const C* __restrict__ statistics, Sums* __restrict__ out, const Channels rows, int64 parts,
    int64 chunk, int64 n) {
    const int64 channel = blockIdx.x / parts, part = blockIdx.x - channel * parts;
    const int64 stop = (part + 1) * chunk < n ? (part + 1) * chunk : n;
    const C mean = statistics[channel], inverse = statistics[rows.channels + channel];
    Sums own = Sums::none();
#pragma unroll 4
    for (int64 k = part * chunk + threadIdx.x; k < stop; k += 256) {
        const int64 place = rows.place(channel, k);
        const Together values = x[place], slopes = g[place];
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const C slope = load(slopes.values[j]);
            own.slopes += slope;
            own.steep += slope * ((load(values.values[j]) - mean) * inverse);
        }
    }
    own = joined(own);
    if (threadIdx.x == 0) out[blockIdx.x] = own;
}
extern "C" __global__ void __launch_bounds__(256) join_sums(
    const Sums* __restrict__ sums, T* __restrict__ to_gamma, T* __restrict__ to_beta,
    C* __restrict__ means, double count, int64 parts, int64 channels) {
    Sums own = Sums::none();
    for (int64 k = threadIdx.x; k < parts; k += 256)
        own = own.joined(sums[blockIdx.x * parts + k]);
    own = joined(own);
    if (threadIdx.x) return;
    to_gamma[blockIdx.x] = convert<T>(own.steep);
    to_beta[blockIdx.x] = convert<T>(own.slopes);
    means[blockIdx.x] = own.slopes / (C)count;
    means[channels + blockIdx.x] = own.steep / (C)count;
}
#endif

#ifdef HAS_channel_slopes
extern "C" __global__ void __launch_bounds__(256) channel_slopes(
    const Together* __restrict__ x, const Together* __restrict__ g,
    const C* __restrict__ statistics, const C* __restrict__ means, const T* __restrict__ gamma,
    Together* __restrict__ out, const Channels rows, int64 n) {
    const uint32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const uint32 row = quotient(i, rows.by_packs);
    const uint32 channel = row - quotient(row, rows.by_channels) * (uint32)rows.channels;
    const C mean = statistics[channel], inverse = statistics[rows.channels + channel];
    const C level = means[channel], bend = means[rows.channels + channel];
    const C factor = gamma ? inverse * load(gamma[channel]) : inverse;
    const Together values = x[i], slopes = g[i];
    Together result;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const C normal = (load(values.values[j]) - mean) * inverse;
        result.values[j] = convert<T>((load(slopes.values[j]) - level - normal * bend) * factor);
    }
    out[i] = result;
}
#endif
