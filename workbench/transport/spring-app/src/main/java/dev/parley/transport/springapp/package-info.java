/**
 * How Spring Boot runs inside a service: started by a program rather than from its own {@code main}, silent on standard output, several in
 * one JVM.
 *
 * <p>Starting points: {@link dev.parley.transport.springapp.BootApplications}, {@link dev.parley.transport.springapp.SharedContext}. Not a
 * technology itself; imports Spring Boot only.
 */
@NullMarked
package dev.parley.transport.springapp;

import org.jspecify.annotations.NullMarked;
