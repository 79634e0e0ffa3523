/**
 * One microservice as a process: a node of a topology that serves a work's contract over one technology, calls its
 * neighbours, times those calls on its own clock, and tells its health and metrics over HTTP.
 *
 * <p>Starting point: {@link dev.parley.service.ServiceMain}. Its class path is part of what is measured, so it imports
 * only the spi, the model, the protocol, HdrHistogram and the JDK; transport and work come by ServiceLoader.
 */
@NullMarked
package dev.parley.service;

import org.jspecify.annotations.NullMarked;
