// A kernel that is launched early may start before the kernel before it is done: it lets the next one
// do so, and waits before it reads or writes what others write or read. Launched otherwise, it need
// not wait. GPUs before compute capability 9.0 launch none early.

#if !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 900
__device__ __forceinline__ void let_next_start() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ __forceinline__ void wait_for_kernel_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
// Fetches bytes, a multiple of 16, into the L2 cache. It is coherent: they may be written later.
__device__ __forceinline__ void prefetch_bytes(const void* address, uint32 bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(address), "r"(bytes) : "memory");
}
#else
__device__ __forceinline__ void prefetch_bytes(const void*, uint32) {}
__device__ __forceinline__ void let_next_start() {}
__device__ __forceinline__ void wait_for_kernel_before() {}
#endif
