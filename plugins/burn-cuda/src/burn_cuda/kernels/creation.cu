// T: elements. Evenly spaced numbers: floats in double, integers in 64 bits.

extern "C" __global__ void arange_float(double start, double step, T* out, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = convert<T>(start + (double)i * step);
}

extern "C" __global__ void arange_integer(int64 start, int64 step, T* out, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = convert<T>((int64)((uint64)start + (uint64)i * (uint64)step));
}
