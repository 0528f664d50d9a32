// T: elements. A thread reads one element of each operand and writes one of each result.

typedef typename Computed<T>::type C;

extern "C" __global__ void adam_step(
    const T* __restrict__ parameter, const T* __restrict__ gradient, const T* __restrict__ first,
    const T* __restrict__ second, T* __restrict__ new_parameter, T* __restrict__ new_first,
    T* __restrict__ new_second, double decay, double beta1, double one_minus_beta1, double beta2,
    double one_minus_beta2, double rate, double scale, double epsilon, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const C g = load(gradient[i]);
    const C m = load(first[i]) * (C)beta1 + g * (C)one_minus_beta1;
    const C v = load(second[i]) * (C)beta2 + g * g * (C)one_minus_beta2;
    const C change = m / (sqrt(v) * (C)scale + (C)epsilon) * (C)rate;
    new_parameter[i] = convert<T>(load(parameter[i]) * (C)decay - change);
    new_first[i] = convert<T>(m);
    new_second[i] = convert<T>(v);
}

extern "C" __global__ void sgd_step(
    const T* __restrict__ parameter, const T* __restrict__ gradient,
    const T* __restrict__ velocity, T* __restrict__ new_parameter, T* __restrict__ new_velocity,
    double rate, double momentum, double decay, int64 nesterov, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const C p = load(parameter[i]);
    C g = load(gradient[i]);
    if (decay != 0) g = g + p * (C)decay;
    const C v = momentum != 0 ? load(velocity[i]) * (C)momentum + g : g;
    const C direction = nesterov ? g + v * (C)momentum : v;
    new_parameter[i] = convert<T>(p - direction * (C)rate);
    new_velocity[i] = convert<T>(v);
}
