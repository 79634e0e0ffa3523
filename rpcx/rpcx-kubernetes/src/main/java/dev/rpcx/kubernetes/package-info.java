/**
 * Finds a service's instances by the EndpointSlices of a Kubernetes cluster, and reports at once when a pod becomes
 * ready or disappears. Starting point: {@link dev.rpcx.kubernetes.KubernetesEndpoints}. Each watch has one daemon
 * thread, which blocks while it reads; no other thread waits for it. Changes that are held back, for up to 100 ms, are
 * reported on a daemon thread of their own.
 */
@NullMarked
package dev.rpcx.kubernetes;

import org.jspecify.annotations.NullMarked;
