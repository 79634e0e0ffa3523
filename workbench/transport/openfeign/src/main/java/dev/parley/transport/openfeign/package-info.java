/**
 * Spring Cloud OpenFeign: an annotated interface called over HTTP, served by a Spring MVC controller.
 *
 * <p>Starting points: {@link dev.parley.transport.openfeign.OpenFeignProvider}, {@link dev.parley.transport.openfeign.MessagesClient}.
 * Handlers run on Tomcat's request threads, calls block the caller's. Imports the SPI, Spring and what the Spring technologies share; no
 * other transport.
 */
@NullMarked
package dev.parley.transport.openfeign;

import org.jspecify.annotations.NullMarked;
