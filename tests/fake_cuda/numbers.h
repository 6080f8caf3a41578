/* Numbers of the CUDA runtime that the stand-in shares with it. */
#ifndef OC_TESTS_FAKE_CUDA_NUMBERS_H
#define OC_TESTS_FAKE_CUDA_NUMBERS_H

#define FAKE_CUDA_ERRORS(X)                                                                                            \
    X(cudaSuccess, 0)                                                                                                  \
    X(cudaErrorInvalidValue, 1)                                                                                        \
    X(cudaErrorMemoryAllocation, 2)                                                                                    \
    X(cudaErrorInitializationError, 3)                                                                                 \
    X(cudaErrorInvalidConfiguration, 9)                                                                                \
    X(cudaErrorStubLibrary, 34)                                                                                        \
    X(cudaErrorInsufficientDriver, 35)                                                                                 \
    X(cudaErrorDevicesUnavailable, 46)                                                                                 \
    X(cudaErrorInvalidDeviceFunction, 98)                                                                              \
    X(cudaErrorNoDevice, 100)                                                                                          \
    X(cudaErrorInvalidDevice, 101)                                                                                     \
    X(cudaErrorNoKernelImageForDevice, 209)                                                                            \
    X(cudaErrorECCUncorrectable, 214)                                                                                  \
    X(cudaErrorIllegalAddress, 700)                                                                                    \
    X(cudaErrorSystemDriverMismatch, 803)

#define FAKE_CUDA_COPIES(X)                                                                                            \
    X(cudaMemcpyHostToDevice, 1)                                                                                       \
    X(cudaMemcpyDeviceToHost, 2)

#endif
