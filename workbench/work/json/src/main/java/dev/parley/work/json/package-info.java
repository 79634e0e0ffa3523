/**
 * The work {@code json}: a front that checks a document and passes it on, and a service behind it that builds the
 * answer. Source: weerasinghe, sections III and IV.
 *
 * <p>Starting point: {@link dev.parley.work.json.JsonWork}. Threads: the transport's. Never imports a transport.
 */
@NullMarked
package dev.parley.work.json;

import org.jspecify.annotations.NullMarked;
