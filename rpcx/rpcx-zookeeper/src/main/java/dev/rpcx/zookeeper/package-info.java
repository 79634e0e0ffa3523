/**
 * A service's instances in ZooKeeper: an ephemeral node for each registration, named {@code host:port}, with
 * {@code #weight} behind it where that is not 1, and behind {@code @} what tells it from others of the same address.
 * Starting points: {@link dev.rpcx.zookeeper.ZooKeeperEndpoints} for clients,
 * {@link dev.rpcx.zookeeper.ZooKeeperRegistration} for servers. What runs here runs on ZooKeeper's own event thread.
 */
@NullMarked
package dev.rpcx.zookeeper;

import org.jspecify.annotations.NullMarked;
