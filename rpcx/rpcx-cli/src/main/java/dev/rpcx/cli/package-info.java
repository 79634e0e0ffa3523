/**
 * The command {@code rpcx}: it lists and describes what a server publishes, checks whether a server is healthy, makes a
 * call with JSON, and does all that {@link dev.rpcx.tool.SchemaTool} does. Starting point: {@link dev.rpcx.cli.Rpcx}.
 * Imports RPCX, picocli, Jackson and protobuf-java.
 *
 * <ul>
 *   <li>Commands: {@code Rpcx} has one method each; {@link dev.rpcx.cli.Remote} has the options of those that talk to a
 *       server, and {@link dev.rpcx.cli.Calls} does what they do there; {@link dev.rpcx.cli.ClassPath} loads the
 *       classes of services.
 *   <li>What services look like: {@link dev.rpcx.cli.Descriptions} links the descriptors that a server has sent, or
 *       that were made of classes; {@link dev.rpcx.cli.Signature} is the text of a method.
 *   <li>JSON: {@link dev.rpcx.cli.JsonRequest} reads a message, {@link dev.rpcx.cli.JsonReply} writes one;
 *       {@link dev.rpcx.cli.JsonLines} reads a stream, and {@link dev.rpcx.cli.Items} waits for the items of one.
 *   <li>What is printed: {@link dev.rpcx.cli.Printable} makes text safe for a terminal; {@link dev.rpcx.cli.Mistake} is
 *       an error in what was asked.
 * </ul>
 */
@NullMarked
package dev.rpcx.cli;

import org.jspecify.annotations.NullMarked;
