/**
 * HTTP REST on Spring Boot: an annotated controller on embedded Tomcat, called with Spring's {@code RestClient}.
 *
 * <p>Starting point: {@link dev.parley.transport.restspring.RestSpringProvider}. Handlers run on Tomcat's request threads, calls block the
 * caller's. Imports the SPI, Spring and what the Spring technologies share; no other transport.
 */
@NullMarked
package dev.parley.transport.restspring;

import org.jspecify.annotations.NullMarked;
