// Keeps the GPU waiting while the host queues what is timed after it.

extern "C" __global__ void wait(int64 nanoseconds) {
    uint64 start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - start < (uint64)nanoseconds);
}
