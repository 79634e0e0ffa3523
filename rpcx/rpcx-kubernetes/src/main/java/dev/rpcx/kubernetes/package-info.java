/**
 * A service's instances as a Kubernetes cluster's EndpointSlices say: told at once when a pod becomes ready or leaves. Starting point:
 * {@link dev.rpcx.kubernetes.KubernetesEndpoints}. One daemon thread a watch, which blocks in reading; nothing else waits for it.
 */
@NullMarked
package dev.rpcx.kubernetes;

import org.jspecify.annotations.NullMarked;
