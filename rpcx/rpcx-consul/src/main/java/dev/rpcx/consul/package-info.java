/**
 * Registers instances of a service in Consul, and finds the healthy ones. Starting points:
 * {@link dev.rpcx.consul.ConsulEndpoints} for clients, {@link dev.rpcx.consul.ConsulRegistration} for servers. Each
 * watch and each registration has one daemon thread, which waits for Consul's answers. Only the thread that closes a
 * registration waits for it, for at most 5 s.
 */
@NullMarked
package dev.rpcx.consul;

import org.jspecify.annotations.NullMarked;
