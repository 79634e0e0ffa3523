/**
 * Registers instances of a service in ZooKeeper, and finds them there. Each registration has an ephemeral node. The
 * node's name is {@code host:port}, then {@code #weight} if the weight is not 1, then {@code @} and an id that
 * distinguishes the registration from others of the same address. Starting points:
 * {@link dev.rpcx.zookeeper.ZooKeeperEndpoints} for clients, {@link dev.rpcx.zookeeper.ZooKeeperRegistration} for
 * servers. The code runs on ZooKeeper's own event thread, and on short-lived daemon threads that make ZooKeeper's
 * client, or try something again after a pause.
 */
@NullMarked
package dev.rpcx.zookeeper;

import org.jspecify.annotations.NullMarked;
