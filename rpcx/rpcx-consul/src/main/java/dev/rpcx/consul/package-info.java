/**
 * A service's healthy instances in Consul. Starting points: {@link dev.rpcx.consul.ConsulEndpoints} for clients,
 * {@link dev.rpcx.consul.ConsulRegistration} for servers. One daemon thread each, which waits for Consul's answers; nothing else waits for it.
 */
@NullMarked
package dev.rpcx.consul;

import org.jspecify.annotations.NullMarked;
