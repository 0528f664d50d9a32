// The gradient of max pooling: each element of g is added at its index in the image.
//
// T: elements, I: indices, SUMS: elements of an image at most. A block adds the elements of one
// image in float64, so that the sum hardly depends on the order.

extern "C" __global__ void __launch_bounds__(256) max_pool_grad(
    const T* __restrict__ g, const I* __restrict__ indices, T* __restrict__ out, int64 positions,
    int64 spatial, volatile int64* flag, int64 op) {
    __shared__ double sums[SUMS];
    const int64 image = blockIdx.x;
    for (int64 i = threadIdx.x; i < spatial; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for (int64 i = threadIdx.x; i < positions; i += blockDim.x) {
        const int64 index = signed_index(indices[image * positions + i]);
        const int64 found = checked_index(index, spatial, flag, op);
        if (found >= 0) atomicAdd(&sums[found], (double)load(g[image * positions + i]));
    }
    __syncthreads();
    for (int64 i = threadIdx.x; i < spatial; i += blockDim.x)
        out[image * spatial + i] = convert<T>(sums[i]);
}
